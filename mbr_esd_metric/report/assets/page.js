// Event handlers, and initialisation.

// ---- events -----------------------------------------------------------------------------------------------

function redraw() {
  drawStatus();
  drawList();
  drawDetail();
  if (!$("panel-overview").hidden) drawOverview();
}

function refilter() {
  chooseRows();
  $("list").scrollTop = 0;
  redraw();
}

function recompute() {
  computeScores();
  computeAgreements();
  chooseRows();
  redraw();
}

const soon = (work) => { let due = 0; return () => { cancelAnimationFrame(due); due = requestAnimationFrame(work); }; };

function openTab(name) {
  for (const tab of ["segments", "overview"]) {
    const on = tab === name;
    $(`panel-${tab}`).hidden = !on;
    $(`tab-${tab}`).setAttribute("aria-selected", String(on));
    $(`tab-${tab}`).tabIndex = on ? 0 : -1;
  }
  if (name === "overview") drawOverview(); else drawList();
}

function fill(select, names, blank) {
  if (blank) select.append(el("option", { value: "", text: blank }));
  names.forEach((name, i) => select.append(el("option", { value: i, text: name })));
}

function listen() {
  const names = columns.map((c) => c.name);
  fill($("metric"), names);
  fill($("reference"), names);
  fill($("system"), data.systems, "all systems");
  // Controls that choose among several columns or systems, or compare two, are shown only if there are several.
  for (const node of document.querySelectorAll("[data-several]")) {
    const several = { columns, systems: data.systems }[node.dataset.several].length > 1;
    if (!several && node.localName === "option") node.remove(); else node.hidden = !several;
  }
  const sure = columns.some((c) => c.confidence.some((v) => !Number.isNaN(v)));
  $("lambda-box").hidden = !sure;
  $("legend-confidence").hidden = !sure;

  // Compare the first metric with the first human, or else the first two columns.
  const human = Math.max(0, columns.findIndex((c) => c.human));
  const metric = columns.findIndex((c, i) => !c.human && i !== human);
  const startWith = () => {
    state.reference = human;
    state.metric = metric >= 0 ? metric : Math.max(0, columns.findIndex((_, i) => i !== human));
    state.similarity = "softf1";
    delete state.source;
    $("metric").value = state.metric;
    $("reference").value = state.reference;
  };
  startWith();
  $("lambda").addEventListener("input", soon(() => {
    state.lambda = Number($("lambda").value);
    $("lambda-value").textContent = state.lambda.toFixed(2);
    recompute();
  }));
  $("metric").addEventListener("change", () => { state.metric = Number($("metric").value); refilter(); });
  $("reference").addEventListener("change", () => { state.reference = Number($("reference").value); recompute(); });
  $("similarity").addEventListener("change", () => { state.similarity = $("similarity").value; refilter(); });
  for (const id of ["find", "low", "high"]) $(id).addEventListener("input", soon(refilter));
  for (const id of ["system", "show", "sort"]) $(id).addEventListener("change", refilter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", () => setTimeout(() => { startWith(); recompute(); $("list").scrollTop = 0; drawList(); }));

  const list = $("list");
  list.addEventListener("scroll", soon(drawList), { passive: true });
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) choose(Number(row.dataset.row), { scroll: false, read: matchMedia("(max-width: 760px)").matches });
  });
  list.addEventListener("keydown", (event) => {
    const at = state.rows.indexOf(state.chosen), page = Math.max(1, Math.floor(list.clientHeight / ROW_HEIGHT) - 1);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: state.rows.length - 1 }[event.key];
    if (to !== undefined && state.rows.length) {
      event.preventDefault();
      choose(state.rows[Math.min(Math.max(to, 0), state.rows.length - 1)]);
    } else if (event.key === "Enter" && state.chosen >= 0) {
      event.preventDefault();
      choose(state.chosen, { read: true });
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (!$("tip").hidden) hideTip(); else if (document.activeElement.closest("#detail")) leave();
    } else if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
      event.preventDefault();
      openTab("segments");
      $("find").focus();
    }
  });
  for (const tab of ["segments", "overview"]) {
    $(`tab-${tab}`).addEventListener("click", () => openTab(tab));
    $(`tab-${tab}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = tab === "segments" ? "overview" : "segments";
      openTab(other);
      $(`tab-${other}`).focus();
    });
  }
  const wide = matchMedia("(min-width: 761px)"), fold = () => { $("more").open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  addEventListener("resize", soon(drawList));
  for (const [on, off] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(on, (event) => showTip(event.target));
    document.addEventListener(off, hideTip);
  }
  // Keyboard navigation also scrolls: the tooltip follows the focused element.
  $("detail").addEventListener("scroll", () => (tipped === document.activeElement ? showTip(tipped) : hideTip()), { passive: true });
}

// ---- tooltips ---------------------------------------------------------------------------------------------

let tipped = null; // the element whose tooltip is open

function showTip(node) {
  const lines = tips.get(node), tip = $("tip");
  if (!lines) return;
  const box = node.getClientRects()[0];
  // Scroll events arrive a frame late; by then, the other tab may have hidden the element.
  if (!box) return void hideTip();
  tipped = node;
  tip.replaceChildren(...lines.map((text) => el("div", { text })));
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(box.left, innerWidth - size.width - 6))}px`;
  tip.style.top = `${box.bottom + size.height + 12 < innerHeight ? box.bottom + 6 : box.top - size.height - 6}px`;
  const mine = (node.dataset.spans || "").split(" ");
  for (const mark of node.parentNode.querySelectorAll("mark[data-spans]")) {
    mark.classList.toggle("lit", mark.dataset.spans.split(" ").some((k) => mine.includes(k)));
  }
}

function hideTip() {
  $("tip").hidden = true;
  tipped = null;
  for (const mark of document.querySelectorAll("mark.lit")) mark.classList.remove("lit");
}

// For the console: the numbers of the page, per column and row, at the current lambda.
window.mbrEsd = {
  ready: false,
  numbers: () => ({ lambda: state.lambda, rows: state.rows, scores: scores.map((s) => [...s]), mqm: penalties.map((s) => [...s]), agreements, figures: columns.map((_, i) => figures(i, state.rows)), ranking: ranking(state.rows) }),
};

read().then(() => {
  listen();
  recompute();
  window.mbrEsd.ready = true;
}).catch((error) => {
  $("status").textContent = `This report cannot be opened: ${error.message}`;
  throw error;
});
