// The embedded data, the state of the page, the numbers, and the selection of rows.

const ROW_HEIGHT = 84; // .row in viewer.css
const $ = (id) => document.getElementById(id);
const state = { lambda: 0, metric: 0, reference: 0, similarity: "softf1", rows: [], chosen: -1 };
let data, columns, texts, lengths, scores, penalties, agreements;

// ---- reading ----------------------------------------------------------------------------------------------

async function read() {
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  data = await new Response(stream).json();
  texts = data.mt;
  lengths = Int32Array.from(texts, codePoints);
  columns = data.columns.map(unpack);
}

const codePoints = (text) => {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) { count--; i++; }
  }
  return count;
};

function unpack(column) {
  const rows = column.count.length;
  const first = new Int32Array(rows + 1);
  const scored = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) {
    scored[row] = column.count[row] === null ? 0 : 1;
    first[row + 1] = first[row] + (column.count[row] || 0);
  }
  const start = Int32Array.from(column.start);
  const major = Uint8Array.from(column.major);
  const category = (k) => data.categories[column.category[k]] || "";
  return {
    name: column.name, human: column.human, intervals: column.intervals, own: column.own, parts: column.parts, instead: column.instead || {}, corrected: column.corrected || {}, estimated: column.estimated || {}, unsure: column.unsure || {}, warning: column.warning || {}, mqm: column.mqm, first, scored, start, major, category,
    end: start.map((from, k) => from + column.length[k]),
    source: Uint8Array.from(column.source), // 1: offsets count in the source
    confidence: Float64Array.from(column.confidence, (c) => (c === null ? NaN : c)),
    penalty: Float64Array.from(column.major, (m, k) => Measures.penalty(data.weights, m, category(k))),
  };
}

// ---- numbers ----------------------------------------------------------------------------------------------

// Per column and row the MQM score (penalties) and the score: the stored ones, or those computed from the spans. Above
// a confidence threshold, they are computed from the remaining spans. NaN if there is neither.
function computeScores() {
  penalties = columns.map((column) => Float64Array.from(column.scored, (scored, row) => {
    const stored = storedAt(column.mqm, row);
    const mine = !Number.isNaN(stored) && (!scored || state.lambda === 0 || !hasSpans(column, row));
    return mine ? stored : scored ? Measures.score(column, row, data.weights.floor, state.lambda) : NaN;
  }));
  scores = columns.map((column, index) => Float64Array.from(column.scored, (scored, row) => {
    const stored = storedAt(column.own, row);
    const mine = !Number.isNaN(stored) && (!scored || state.lambda === 0 || !hasSpans(column, row));
    return mine ? stored : (penalties[index][row] - data.weights.floor) / -data.weights.floor;
  }));
}

const storedAt = (values, row) => (values && values[row] !== null ? values[row] : NaN);
const hasSpans = (column, row) => column.first[row + 1] > column.first[row];

// Similarities of each column to the reference; null if either has no annotation.
function computeAgreements() {
  const reference = columns[state.reference];
  agreements = columns.map((column) => Array.from(column.scored, (scored, row) =>
    scored && reference.scored[row] ? Measures.compare(column, reference, row, lengths[row], state.lambda) : null));
}

const agreement = (row, measure = state.similarity) => {
  const found = agreements[state.metric][row];
  return found ? found[measure] : NaN;
};

// The number of spans of one severity that reach the confidence threshold.
function tally(column, row, major) {
  let found = 0;
  for (let k = column.first[row]; k < column.first[row + 1]; k++) {
    if (column.major[k] === major && !(column.confidence[k] < state.lambda)) found++;
  }
  return found;
}

// ---- choosing rows ----------------------------------------------------------------------------------------

const SHOW = {
  all: () => true,
  major: (column, row) => tally(column, row, 1),
  minor: (column, row) => tally(column, row, 0) && !tally(column, row, 1),
  none: (column, row) => column.scored[row] && !tally(column, row, 0) && !tally(column, row, 1),
  differs: (column, row) => agreement(row, "softf1") < 1,
};
const gap = (row) => Math.abs(scores[state.metric][row] - scores[state.reference][row]);
const SORT = {
  worst: (row) => scores[state.metric][row], best: (row) => -scores[state.metric][row],
  disagree: (row) => agreement(row), agree: (row) => -agreement(row), gap: (row) => -gap(row),
  severe: (row) => -severity(columns[state.metric], row),
  system: (row) => place("systems", () => data.systems)[data.system[row]],
  text: (row) => place("texts", () => texts.map((mt, at) => `${data.sources[data.src[at]]}\n${mt}`))[row],
  long: (row) => -lengths[row],
};
// Sorts any major error before any number of minor ones; NaN if there are no spans to count.
const severity = (column, row) => (column.scored[row] ? tally(column, row, 1) + tally(column, row, 0) / 1e6 : NaN);

const placed = {}; // the cache of `place`
// The rank of each name in alphabetical order; numbers within names are compared by value.
function place(kind, names) {
  if (!placed[kind]) {
    const { compare } = new Intl.Collator("en", { numeric: true }), all = names();
    placed[kind] = new Int32Array(all.length);
    all.map((_, i) => i).sort((a, b) => compare(all[a], all[b])).forEach((i, at) => { placed[kind][i] = at; });
  }
  return placed[kind];
}

// `items` by ascending number; NaN last, ties in their original order.
function sortBy(items, key) {
  const keys = new Map(items.map((item) => { const value = key(item); return [item, Number.isNaN(value) ? Infinity : value]; }));
  return items.sort((a, b) => keys.get(a) - keys.get(b) || 0);
}

let folded = null; // lower-case text of every row, computed at the first search
function chooseRows() {
  const find = $("find").value.trim().toLowerCase();
  if (find && !folded) {
    folded = texts.map((mt, row) => `${data.ids[row]}\n${data.sources[data.src[row]]}\n${mt}`.toLowerCase());
  }
  const system = $("system").value === "" ? -1 : Number($("system").value);
  const low = $("low").value === "" ? -Infinity : Number($("low").value);
  const high = $("high").value === "" ? Infinity : Number($("high").value);
  const bounded = low > -Infinity || high < Infinity;
  const column = columns[state.metric], shown = SHOW[$("show").value], score = scores[state.metric];
  const rows = [];
  for (let row = 0; row < texts.length; row++) {
    if (system >= 0 && data.system[row] !== system) continue;
    if (state.source !== undefined && data.src[row] !== state.source) continue;
    if (bounded && !(score[row] >= low && score[row] <= high)) continue;
    if (find && !folded[row].includes(find)) continue;
    if (shown(column, row)) rows.push(row);
  }
  const by = SORT[$("sort").value];
  state.rows = by ? sortBy(rows, by) : rows;
  if (!rows.includes(state.chosen)) state.chosen = rows.length ? rows[0] : -1;
}
