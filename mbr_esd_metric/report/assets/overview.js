// The overview: metrics, systems, and what a higher bar of confidence does.

// One metric's figures over `rows`: those that both it and the reference annotate, for the similarities.
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
    ...(omissions ? ["omitted"] : []), "SoftF1", "F1", "SoftDice", "corpus SoftDice"].map(heading))));
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
    el("p", { text: `Over the ${many(rows.length, "segment")} that pass the filters, spans with confidence of at least ${state.lambda.toFixed(2)}; the similarities are to ${reference}.` }),
    el("div", { class: "scroll" }, metrics),
  ];
  if (data.systems.length > 1) {
    parts.push(el("h2", { text: "Systems" }),
      el("p", { text: `Mean score with its 95% interval (normal approximation), best ${columns[state.metric].name} first. Higher is better.` }),
      el("div", { class: "scroll" }, systemsTable(rows)));
  }
  const swept = columns.map((_, i) => i).filter((i) => i !== state.reference && columns[i].confidence.some((c) => c < 1));
  if (swept.length) {
    parts.push(el("h2", { text: "Confidence sweep" }), el("p", { text: `The mean similarity to ${reference} when spans below each confidence are dropped.` }),
      el("div", { class: "sweep" }, ...["softf1", "f1", "softdice"].map((measure) => sweepChart(measure, swept, sweepLines(swept, rows)))));
  }
  $("panel-overview").replaceChildren(...parts);
}

// Per system and column: mean score and interval over `rows`.
function ranking(rows) {
  return data.systems.map((name, system) => {
    const mine = rows.filter((row) => data.system[row] === system);
    return { name, cells: columns.map((_, i) => Measures.interval(mine.map((r) => scores[i][r]).filter((v) => !Number.isNaN(v)))) };
  });
}

function systemsTable(rows) {
  const ranked = sortBy(ranking(rows).filter((s) => s.cells.some((c) => c.n)), (s) => -s.cells[state.metric].mean);
  const edges = columns.map((_, i) => ranked.map((s) => s.cells[i]).filter((c) => c.n)
    .flatMap((c) => [c.mean - (c.half || 0), c.mean + (c.half || 0)]));
  const table = el("table", {}, el("thead", {}, el("tr", {}, heading("system"), ...columns.map((c) => heading(c.name)))));
  table.append(el("tbody", {}, ...ranked.map((system) => el("tr", {}, el("th", { text: system.name, scope: "row", title: system.name }),
    ...system.cells.map((c, i) => {
      if (!c.n) return cell("–");
      const low = Math.min(...edges[i]), width = Math.max(...edges[i]) - low || 1, place = (v) => `${(100 * (v - low)) / width}%`;
      const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i"), el("b"));
      bar.firstChild.style.left = place(c.mean - (c.half || 0));
      bar.firstChild.style.width = `${(200 * (c.half || 0)) / width}%`;
      bar.lastChild.style.left = place(c.mean);
      return el("td", {}, `${fixed(c.mean, 4)} ± ${fixed(c.half, 4)}`, bar);
    })))));
  return table;
}

const INK = ["#2f6fd0", "#c2571a", "#2c8c53", "#8a4fbf", "#a0871a", "#c03a77"];
const DASH = ["", "6 3", "2 3", "8 3 2 3", "1 2", "10 4"];

let sweptFor = null; // rows and reference of the last sweep, which the slider does not change

// Measure -> for each swept column its mean similarity to the reference at 0.0, 0.1, ..., 1.0.
function sweepLines(swept, rows) {
  const key = [state.reference, ...rows].join();
  if (sweptFor && sweptFor.key === key) return sweptFor.lines;
  const reference = columns[state.reference], lines = { softf1: [], f1: [], softdice: [] };
  for (const i of swept) {
    const shared = rows.filter((row) => columns[i].scored[row] && reference.scored[row]);
    const steps = Array.from({ length: 11 }, (_, step) => {
      const sums = { softf1: 0, f1: 0, softdice: 0 };
      for (const row of shared) {
        const similar = Measures.compare(columns[i], reference, row, lengths[row], step / 10);
        for (const measure of Object.keys(sums)) sums[measure] += similar[measure];
      }
      return sums;
    });
    for (const measure of Object.keys(lines)) lines[measure].push(steps.map((sums) => sums[measure] / shared.length));
  }
  sweptFor = { key, lines };
  return lines;
}

function sweepChart(measure, swept, { [measure]: lines }) {
  const svg = (tag, props, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const width = 340, height = 190 + 16 * swept.length;
  const values = lines.flat().filter((v) => !Number.isNaN(v));
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const x = (step) => 40 + step * 29, y = (v) => 160 - (140 * (v - low)) / span;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${measure} by confidence` });
  for (const part of [0, 0.5, 1]) {
    const v = low + part * span;
    drawing.append(svg("line", { class: "axis", x1: 40, x2: 330, y1: y(v), y2: y(v) }), svg("text", { x: 34, y: y(v) + 4, "text-anchor": "end" }, number(v)));
  }
  for (const step of [0, 5, 10]) drawing.append(svg("text", { x: x(step), y: 176, "text-anchor": "middle" }, (step / 10).toFixed(1)));
  lines.forEach((line, at) => {
    drawing.append(
      svg("polyline", { points: line.map((v, step) => `${x(step)},${y(v)}`).join(" "), stroke: INK[at % 6], "stroke-dasharray": DASH[at % 6] }),
      svg("line", { x1: 40, x2: 64, y1: 190 + 16 * at, y2: 190 + 16 * at, stroke: INK[at % 6], "stroke-width": 2, "stroke-dasharray": DASH[at % 6] }),
      svg("text", { x: 70, y: 194 + 16 * at }, columns[swept[at]].name));
  });
  const names = { softf1: "SoftF1", f1: "F1", softdice: "SoftDice" };
  return el("figure", {}, el("figcaption", { text: names[measure] }), drawing);
}
