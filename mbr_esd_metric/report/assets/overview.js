// The overview: metrics and systems.

// The figures of one metric over `rows`; similarities are over the rows that the reference annotates too.
function figures(index, rows) {
  const column = columns[index];
  const out = { n: 0, score: 0, mqm: 0, penalised: 0, softf1: 0, f1: 0, softdice: 0, major: 0, minor: 0, omissions: 0, compared: 0 };
  let common = 0, total = 0;
  for (const row of rows) {
    if (Number.isNaN(scores[index][row])) continue;
    out.n++;
    out.score += scores[index][row];
    if (!Number.isNaN(penalties[index][row])) { out.penalised++; out.mqm += penalties[index][row]; }
    for (const span of spansOf(column, row)) out[span.omission ? "omissions" : span.major ? "major" : "minor"]++;
    const similar = agreements[index][row];
    if (!similar) continue;
    out.compared++;
    for (const measure of ["softf1", "f1", "softdice"]) out[measure] += similar[measure];
    common += similar.common;
    total += similar.total;
  }
  out.score /= out.n;
  out.mqm /= out.penalised;
  for (const measure of ["softf1", "f1", "softdice"]) out[measure] /= out.compared;
  out.corpus = out.compared === 0 ? NaN : total === 0 ? 1 : (2 * common) / total;
  return out;
}

const cell = (text) => el("td", { text });
const heading = (text) => el("th", { text, scope: "col" });

function drawOverview() {
  const rows = state.rows, reference = columns[state.reference].name, omissions = columns.some((c) => c.source.some((s) => s));
  const metrics = el("table", {}, el("thead", {}, el("tr", {}, ...["metric", "segments", "score", "MQM", "major", "minor",
    ...(omissions ? ["omissions"] : []), "SoftF1", "F1", "SoftDice", "corpus SoftDice"].map(heading))));
  const body = el("tbody");
  columns.forEach((column, index) => {
    const f = figures(index, rows), self = index === state.reference;
    const line = el("tr", {}, el("th", { text: column.name, scope: "row", title: column.name }), cell(f.n.toLocaleString("en")), cell(fixed(f.score, 4)), cell(fixed(f.mqm, 3)),
      cell(f.major.toLocaleString("en")), cell(f.minor.toLocaleString("en")),
      ...(omissions ? [cell(f.omissions.toLocaleString("en"))] : []),
      ...[f.softf1, f.f1, f.softdice, f.corpus].map((value) => cell(self ? "–" : number(value, 4))));
    line.dataset.metric = column.name;
    body.append(line);
  });
  metrics.append(body);
  const parts = [
    el("h2", { text: "Metrics" }),
    el("p", { text: `Over the ${many(rows.length, "segment")} that match the filters, with spans of confidence ${state.lambda.toFixed(2)} or higher; similarities are to ${reference}.` }),
    el("div", { class: "scroll" }, metrics),
  ];
  if (data.systems.length > 1) {
    parts.push(el("h2", { text: "Systems" }),
      el("p", { text: `Mean score, best ${columns[state.metric].name} first; higher is better. The 95% interval (bootstrap over segments) is shown for all segments and spans.` }),
      el("div", { class: "scroll" }, systemsTable(rows)));
  }
  parts.push(...data.notes.map((note) => el("p", { text: note })));
  $("panel-overview").replaceChildren(...parts);
}

// Per system and column: the number of scores in `rows`, their mean, and the interval over all segments and spans.
function ranking(rows) {
  const whole = rows.length === texts.length && state.lambda === 0;
  return data.systems.map((name, system) => {
    const mine = rows.filter((row) => data.system[row] === system);
    return { name, cells: columns.map((column, i) => {
      const values = mine.map((r) => scores[i][r]).filter((v) => !Number.isNaN(v));
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      return { n: values.length, mean, interval: whole ? column.intervals[system] : null };
    }) };
  });
}

function systemsTable(rows) {
  const ranked = sortBy(ranking(rows).filter((s) => s.cells.some((c) => c.n)), (s) => -s.cells[state.metric].mean);
  const ends = (c) => c.interval || [c.mean, c.mean];
  const edges = columns.map((_, i) => ranked.map((s) => s.cells[i]).filter((c) => c.n).flatMap(ends));
  const table = el("table", {}, el("thead", {}, el("tr", {}, heading("system"), ...columns.map((c) => heading(c.name)))));
  table.append(el("tbody", {}, ...ranked.map((system) => el("tr", {}, el("th", { text: system.name, scope: "row", title: system.name }),
    ...system.cells.map((c, i) => {
      if (!c.n) return cell("–");
      const least = Math.min(...edges[i]), width = Math.max(...edges[i]) - least || 1, percent = (v) => `${(100 * v) / width}%`;
      const [low, high] = ends(c), bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i"), el("b"));
      bar.firstChild.style.left = percent(low - least);
      bar.firstChild.style.width = percent(high - low);
      bar.lastChild.style.left = percent(c.mean - least);
      return el("td", {}, c.interval ? `${fixed(c.mean, 4)} (${fixed(low, 4)} to ${fixed(high, 4)})` : fixed(c.mean, 4), bar);
    })))));
  return table;
}
