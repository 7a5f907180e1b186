// The list and the selected segment. Data are never parsed as HTML: text is only inserted as textContent.

// ---- drawing helpers --------------------------------------------------------------------------------------

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const fixed = (value, digits) => (Number.isNaN(value) ? "–" : value.toFixed(digits).replace("-", "−"));
const number = (value, digits = 3) => fixed(value, digits).replace(/^(−?)0\./, "$1."); // a similarity: .931
const asScore = (value) => fixed(value, 4); // a score, as the command line prints it
const points = (value) => (Number.isNaN(value) ? "–" : String(Math.round(value * 100) / 100).replace("-", "−"));
const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const tips = new WeakMap(); // element -> lines of its tooltip

// The data count code points, JavaScript counts UTF-16 units: a function from one to the other, for one text.
function units(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => offset;
  const at = [0];
  for (const character of text) at.push(at[at.length - 1] + character.length);
  return (offset) => at[Math.min(offset, at.length - 1)];
}

function spansOf(column, row, lambda = state.lambda) {
  const spans = [];
  for (let k = column.first[row]; k < column.first[row + 1]; k++) {
    if (column.confidence[k] < lambda) continue;
    spans.push({
      start: column.start[k], end: column.end[k], major: column.major[k] === 1,
      category: column.category(k), confidence: column.confidence[k], omission: column.source[k] === 1,
      instead: column.instead[k],
    });
  }
  return spans;
}

function describe(span) {
  const parts = [span.major ? "major" : "minor", span.category || (span.omission ? "omission" : "")];
  if (!Number.isNaN(span.confidence)) parts.push(`confidence ${span.confidence.toFixed(2)}`);
  return parts.filter(Boolean).join(" · ");
}

// `text` cut at every boundary of `spans`; each marked piece knows the spans that cover it.
function marked(node, text, spans, { from = 0, to = Infinity, interactive = false } = {}) {
  const unit = units(text);
  const end = Math.min(to, codePoints(text));
  const cuts = [...new Set([from, end, ...spans.flatMap((s) => [s.start, s.end])])]
    .filter((cut) => cut >= from && cut <= end).sort((a, b) => a - b);
  const opened = new Set();
  for (let i = 0; i + 1 < cuts.length; i++) {
    const piece = text.slice(unit(cuts[i]), unit(cuts[i + 1]));
    const covering = spans.filter((s) => s.start <= cuts[i] && cuts[i + 1] <= s.end);
    if (covering.length === 0) { node.append(piece); continue; }
    const mark = el("mark", { class: covering.some((s) => s.major) ? "major" : "minor", text: piece });
    const sure = Math.max(...covering.map((s) => (Number.isNaN(s.confidence) ? 1 : s.confidence)));
    mark.style.setProperty("--sure", sure);
    if (interactive) {
      tips.set(mark, covering.map(describe));
      mark.setAttribute("aria-description", covering.map(describe).join("; "));
      if (covering.some((s) => !opened.has(s))) mark.tabIndex = 0; // one stop per error, however it is cut
      covering.forEach((s) => opened.add(s));
      mark.dataset.spans = covering.map((s) => spans.indexOf(s)).join(" ");
    }
    node.append(mark);
  }
  return node;
}

// ---- the list ---------------------------------------------------------------------------------------------

function drawList() {
  const list = $("list"), spacer = $("spacer");
  spacer.style.height = `${state.rows.length * ROW_HEIGHT}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_HEIGHT) - 4);
  const past = Math.min(state.rows.length, first + Math.ceil(list.clientHeight / ROW_HEIGHT) + 8);
  const drawn = [];
  for (let at = first; at < past; at++) drawn.push(listRow(at));
  spacer.replaceChildren(...drawn);
  const at = state.rows.indexOf(state.chosen);
  if (at >= first && at < past) list.setAttribute("aria-activedescendant", `row-${state.chosen}`);
  else list.removeAttribute("aria-activedescendant");
}

// The offset after the first space at or after `from`, if there is one nearby.
function wordStart(text, from) {
  const unit = units(text), space = text.slice(unit(from), unit(from + 25)).indexOf(" ");
  return space < 0 ? from : from + space + 1;
}

function listRow(at) {
  const row = state.rows[at], column = columns[state.metric];
  const all = column.scored[row] ? spansOf(column, row) : [], spans = all.filter((s) => !s.omission);
  const from = spans.length && spans[0].start > 70 && lengths[row] > 110 ? wordStart(texts[row], spans[0].start - 30) : 0;
  const text = el("div", { class: "text", dir: "auto" });
  if (from) text.append("… ");
  marked(text, texts[row], spans, { from, to: from + 400 });
  const node = el("div", {
    class: "row", role: "option", id: `row-${row}`, "aria-selected": String(row === state.chosen),
    "aria-posinset": at + 1, "aria-setsize": state.rows.length,
  }, el("div", { class: "meta" },
    el("span", { class: "who", text: label(row), dir: "auto" }), missingWords(column, row, all),
    el("span", {}, el("b", { text: asScore(scores[state.metric][row]) })),
    state.metric === state.reference ? null
      : el("span", { text: `agree ${number(agreement(row), 2)}` })), text);
  node.style.top = `${at * ROW_HEIGHT}px`;
  node.dataset.row = row;
  return node;
}

// The longest omission, or the data warning of the segment.
function missingWords(column, row, spans) {
  const source = data.sources[data.src[row]], unit = units(source);
  const [longest] = spans.filter((s) => s.omission).sort((a, b) => b.end - b.start - (a.end - a.start));
  const text = longest ? `missing: ${source.slice(unit(longest.start), unit(longest.end)) || "omission without a span"}` : column.warning[row];
  return text ? el("span", { class: "missing", dir: "auto", text }) : null;
}

const isBlank = (row) => !texts[row].trim() && data.sources[data.src[row]].trim() !== "";
const label = (row) => (data.systems.length > 1 ? `${data.ids[row]} · ${data.systems[data.system[row]]}` : data.ids[row]);

function drawStatus() {
  const all = texts.length, shown = state.rows.length;
  const part = shown === all ? many(all, "segment") : `${shown.toLocaleString("en")} of ${many(all, "segment")}`;
  const source = state.source === undefined ? "" : " of one source";
  $("status").textContent = part + source + (columns.length ? ` · ${columns[state.metric].name}` : "");
}

function choose(row, { scroll = true, read = false } = {}) {
  state.chosen = row;
  const at = state.rows.indexOf(row);
  const list = $("list");
  if (scroll && at >= 0) {
    const top = at * ROW_HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW_HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_HEIGHT - list.clientHeight;
  }
  drawList();
  drawDetail();
  if (read) {
    $("split").classList.add("reading");
    document.body.classList.add("reading-mode");
    $("detail").scrollTop = 0;
    $("detail").focus({ preventScroll: true });
  }
}

function leave() {
  $("split").classList.remove("reading");
  document.body.classList.remove("reading-mode");
  drawList();
  $("list").focus();
}

// ---- one segment ------------------------------------------------------------------------------------------

function drawDetail() {
  const detail = $("detail"), row = state.chosen;
  if (row < 0) {
    detail.replaceChildren(el("p", { class: "quiet", text: "No segment matches these filters." }));
    return;
  }
  const at = state.rows.indexOf(row);
  const step = (by, text, name) => {
    const button = el("button", { type: "button", text, "aria-label": name, onclick: () => choose(state.rows[at + by]) });
    button.disabled = at < 0 || at + by < 0 || at + by >= state.rows.length;
    return button;
  };
  const siblings = data.src.filter((source) => source === data.src[row]).length;
  const title = el("div", { class: "title" },
    el("button", { class: "back", type: "button", text: "‹ List", onclick: leave }),
    el("h2", { text: label(row), dir: "auto" }), el("span", { class: "grow" }),
    siblings > 1 || state.source !== undefined ? el("button", {
      type: "button", id: "same-source",
      text: state.source === undefined ? `All ${siblings} translations of this source` : "All sources",
      onclick: () => { state.source = state.source === undefined ? data.src[row] : undefined; refilter(); },
    }) : null,
    step(-1, "‹", "previous segment"), step(1, "›", "next segment"));
  const source = data.sources[data.src[row]];
  const cards = el("div", { class: "cards" });
  if (source) {
    const column = columns[state.metric], spans = column.scored[row] ? spansOf(column, row) : [];
    cards.append(el("section", { class: "card full", "aria-label": "Source" },
      el("h3", { text: "Source" }), marked(el("p", { class: "body", dir: "auto" }), source, spans.filter((s) => s.omission), { interactive: true })));
  }
  const order = columns.map((_, i) => i).sort((a, b) => columns[b].human - columns[a].human || a - b);
  for (const i of order) if (!Number.isNaN(scores[i][row])) cards.append(metricCard(i, row));
  for (const candidates of data.candidates) if (candidates.n[row]) cards.append(candidatesCard(candidates, row));
  if (!columns.some((column) => column.scored[row])) {
    cards.append(el("section", { class: "card full" }, el("h3", { text: "Translation" }),
      el("p", { class: "body", dir: "auto", text: texts[row] })));
  }
  detail.replaceChildren(title, cards);
}

function metricCard(index, row) {
  const column = columns[index], spans = spansOf(column, row), similar = agreements[index][row];
  if (!column.scored[row]) {
    return el("section", { class: "card", "aria-label": column.name }, el("div", { class: "head" },
      el("h3", { text: column.name }), el("span", { class: "score", text: `score ${asScore(scores[index][row])}` })));
  }
  const majors = spans.filter((s) => s.major).length;
  const facts = el("p", { class: "facts" });
  facts.append(el("span", { text: isBlank(row) ? "blank translation" : spans.length ? [majors && `${majors} major`, spans.length - majors && `${spans.length - majors} minor`].filter(Boolean).join(", ") : "no error marked" }));
  if (column.unsure[row]) facts.append(el("span", { text: column.unsure[row] }));
  if (column.warning[row]) facts.append(el("span", { class: "missing", text: column.warning[row] }));
  const dropped = column.first[row + 1] - column.first[row] - spans.length;
  if (dropped) facts.append(el("span", { text: `${dropped} below the threshold` }));
  if (similar && index !== state.reference) {
    facts.append(el("span", { text: `SoftF1 ${number(similar.softf1)}` }), el("span", { text: `F1 ${number(similar.f1)}` }),
      el("span", { text: `SoftDice ${number(similar.softdice)}` }));
  }
  const name = el("h3", { text: column.name }, column.human ? el("span", { class: "tag", text: "human" }) : null,
    index === state.reference && columns.length > 1 ? el("span", { class: "tag", text: "compared with" }) : null);
  const source = data.sources[data.src[row]], missing = spans.filter((s) => s.omission);
  const left = codePoints(source) ? missing.reduce((sum, s) => sum + s.end - s.start, 0) / codePoints(source) : 0;
  if (left) facts.append(el("span", { class: "missing", text: `${Math.round(100 * Math.min(left, 1))}% of the source is missing` }));
  const there = spans.filter((s) => !s.omission), sentences = (column.parts || {})[row];
  // A text that was scored sentence by sentence is shown by sentence, each with its score.
  const body = sentences ? el("div", { class: "sentences" }, ...sentences.flatMap(([from, to, score]) => [
    el("span", { class: "score", text: number(score, 2) }),
    marked(el("p", { class: "body", dir: "auto" }), texts[row], there, { from, to, interactive: true })]))
    : marked(el("p", { class: "body", dir: "auto" }), texts[row], there, { interactive: true });
  const estimate = column.estimated[row] ? " (estimated)" : ""; // not the sum of the spans
  const score = `score ${asScore(scores[index][row])} · MQM ${points(penalties[index][row])}${estimate}`;
  const card = el("section", { class: "card", "aria-label": column.name },
    el("div", { class: "head" }, name, el("span", { class: "score", text: score })), facts, body);
  if (missing.length) {
    card.append(el("p", { class: "facts", text: "omitted from the translation:" }),
      marked(el("p", { class: "body", dir: "auto" }), source, missing, { interactive: true }));
  }
  if (spans.length) {
    const words = (s, text = s.omission ? source : texts[row], unit = units(text)) => text.slice(unit(s.start), unit(s.end)) || "nowhere";
    card.append(el("details", { open: column.corrected[row] && "" }, el("summary", { text: many(spans.length, "error") }), el("ul", {}, ...spans.map((s) =>
      el("li", {}, el("bdi", { text: words(s) }), ` — ${describe(s)}`, s.instead ? correction(s.instead) : null)))));
  }
  if (column.corrected[row]) {
    card.append(el("p", { class: "facts", text: "corrected:" }), el("p", { class: "body", dir: "auto" },
      ...column.corrected[row].map(([sign, run]) => el({ "-": "del", "+": "ins" }[sign] || "span", { text: run }))));
  }
  return card;
}

function correction([text, reason, agreement]) {
  const facts = [reason, agreement === null ? "" : `agreement ${agreement.toFixed(2)}`].filter(Boolean);
  return el("div", {}, "instead: ", el("bdi", {}, text ? el("ins", { text }) : "nothing"), facts.length ? ` — ${facts.join(" · ")}` : null);
}

// The candidates: per character the share that marks it, and the most frequent annotations.
function candidatesCard(candidates, row) {
  const n = candidates.n[row], text = texts[row], unit = units(text);
  const strip = el("p", { class: "body heat", dir: "auto" });
  let at = 0;
  for (const [width, any, major] of candidates.runs[row]) {
    const piece = text.slice(unit(at), unit(at + width));
    at += width;
    if (any === 0) { strip.append(piece); continue; }
    const node = el("span", { text: piece, tabindex: 0, "aria-description": `${any} of ${n} mark this` });
    node.style.setProperty("--share", (0.06 + 0.74 * any / n).toFixed(3));
    tips.set(node, [`${any} of ${n} candidates mark this (${Math.round(100 * any / n)}%)`, `${major} of them as major`]);
    strip.append(node);
  }
  strip.append(text.slice(unit(at))); // trailing white space that the candidates' text lacks
  const table = el("table", { class: "ranked" }, el("thead", {}, el("tr", {},
    el("th", { class: "number", text: "count" }), el("th", { class: "number", text: "log-prob." }), el("th", { text: "annotation" }))));
  const body = el("tbody");
  for (const [count, logprob, spans, omissions] of candidates.top[row]) {
    const [shown, left] = [spans, omissions || []].map((some) => some.map(([start, length, major]) =>
      ({ start, end: start + length, major: major === 1, category: "", confidence: NaN })));
    body.append(el("tr", {}, el("td", { class: "number", text: `${count} of ${n}` }),
      el("td", { class: "number", text: logprob === null ? "–" : fixed(logprob, 1) }),
      el("td", {}, shown.length ? marked(el("p", { class: "body", dir: "auto" }), text, shown) : left.length ? null : el("span", { class: "quiet", text: "no error" }),
        left.length ? marked(el("p", { class: "body", dir: "auto" }), data.sources[data.src[row]], left) : null)));
  }
  table.append(body);
  return el("section", { class: "card full", "aria-label": candidates.name },
    el("div", { class: "head" }, el("h3", { text: candidates.name }),
      el("span", { class: "facts", text: `${n} valid, ${candidates.distinct[row]} distinct, ${candidates.invalid[row]} invalid` })),
    strip, el("details", {}, el("summary", { text: `the most frequent annotations` }), table));
}
