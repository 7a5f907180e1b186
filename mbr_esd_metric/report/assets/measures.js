// The measures of mbr_esd_metric.core, over annotations held in flat arrays. Offsets count code points, as in Python.
// A test checks that every function here equals its Python counterpart on real annotations.
const Measures = (() => {
  const BETA = 1, GAMMA = 0.5, EPS = 1;
  let cuts = new Int32Array(64);
  let last = 0;

  function addCuts(column, row, lambda) {
    for (let k = column.first[row]; k < column.first[row + 1]; k++) {
      if (column.source[k] || column.confidence[k] < lambda) continue; // spans without a confidence (NaN) are always kept
      if (last + 2 > cuts.length) { const wider = new Int32Array(cuts.length * 2); wider.set(cuts); cuts = wider; }
      for (const cut of [column.start[k], column.end[k]]) {
        let at = last++;
        while (at > 0 && cuts[at - 1] > cut) { cuts[at] = cuts[at - 1]; at--; }
        cuts[at] = cut;
      }
    }
  }

  // Which severities cover [from, to): bit 1 minor, bit 2 major.
  function marks(column, row, lambda, from, to) {
    let bits = 0;
    for (let k = column.first[row]; k < column.first[row + 1]; k++) {
      if (!column.source[k] && column.start[k] <= from && to <= column.end[k] && !(column.confidence[k] < lambda)) {
        bits |= column.major[k] ? 2 : 1;
      }
    }
    return bits;
  }

  const severity = (bits) => (bits & 2 ? BETA : 0) + (bits & 1 ? GAMMA : 0);

  function credit(a, b) {
    let best = 0;
    if (a & 2 && b & 2) best = BETA;
    if (a & 1 && b & 1) best = Math.max(best, BETA);
    if ((a & 2 && b & 1) || (a & 1 && b & 2)) best = Math.max(best, GAMMA);
    return best;
  }

  // Similarities of two columns' annotations of one row, over a translation of `length` characters. Omissions (spans of
  // the source) are ignored.
  function compare(a, b, row, length, lambda) {
    last = 0;
    addCuts(a, row, lambda);
    addCuts(b, row, lambda);
    let difference = 0, sumA = 0, sumB = 0, common = 0, credits = 0, coverA = 0, coverB = 0;
    for (let i = 0; i + 1 < last; i++) {
      const width = cuts[i + 1] - cuts[i];
      if (width === 0) continue;
      const inA = marks(a, row, lambda, cuts[i], cuts[i + 1]);
      const inB = marks(b, row, lambda, cuts[i], cuts[i + 1]);
      const va = severity(inA), vb = severity(inB);
      difference += width * Math.abs(va - vb);
      sumA += width * va;
      sumB += width * vb;
      common += width * Math.min(va, vb);
      credits += width * credit(inA, inB);
      if (inA) coverA += width;
      if (inB) coverB += width;
    }
    const precision = Math.max(0, 1 - difference / (length + sumA + EPS));
    const recall = Math.max(0, 1 - difference / (length + sumB + EPS));
    return {
      softf1: precision + recall > 0 ? (2 * precision * recall) / (precision + recall) : 0,
      f1: coverA + coverB === 0 ? 1 : (2 * credits) / (coverA + coverB),
      softdice: (2 * common + EPS) / (sumA + sumB + EPS),
      common, total: sumA + sumB,
    };
  }

  // Score(E) of one row: the sum of its spans' penalties, no lower than the floor.
  function score(column, row, floor, lambda) {
    let sum = 0;
    for (let k = column.first[row]; k < column.first[row + 1]; k++) {
      if (!(column.confidence[k] < lambda)) sum += column.penalty[k];
    }
    return Math.max(sum, floor);
  }

  function penalty(weights, major, category) {
    const name = category.toLowerCase();
    if (major) return name.startsWith("non-translation") ? weights.non_translation : weights.major;
    return name.includes("punctuation") ? weights.minor_punctuation : weights.minor;
  }

  return { compare, score, penalty };
})();
