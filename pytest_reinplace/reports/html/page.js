"use strict";
(() => {
  const filter = document.getElementById("filter"), only = document.getElementById("only");
  const count = document.getElementById("count"), chosen = document.getElementById("chosen");
  const rows = [...document.querySelectorAll("[data-kind]")];
  const textOf = (row) => `${row.dataset.text || row.textContent} ${row.dataset.outcome || ""}`.toLowerCase();
  const texts = new Map(rows.map((row) => [row, textOf(row)]));
  const kinds = ["test", "line", "clone", "copy", "call", "graph"];
  const plurals = { copy: "copies" };
  const of = (kind) => rows.filter((row) => row.dataset.kind === kind);
  // A row may stand for several: all copies that are made at one line for one cause.
  const number = (some) => some.reduce((sum, row) => sum + Number(row.dataset.count || 1), 0);
  const totals = Object.fromEntries(kinds.map((kind) => [kind, number(of(kind))]));
  const words = (text) => (text || "").split(/\s+/).filter(Boolean);
  let source = "";  // the id of the line that was chosen in the map

  const isMeant = (row, wanted) => {
    const { kind, outcome, clones, sources } = row.dataset;
    if (source && !words(sources).includes(source)) return false;
    // A line has clones, of tests with any outcome: whether it is meant is known by its clones.
    if (only.value === "clones" && clones === "0") return false;
    if (only.value === "failed" && outcome !== "failed") return false;
    return wanted.every((word) => texts.get(row).includes(word));
  };

  const apply = () => {
    const wanted = words(filter.value.toLowerCase());
    const shown = new Set(rows.filter((row) => isMeant(row, wanted)));
    // What is shown is never without what it belongs to: its line, its graph, its test.
    for (const kind of ["clone", "copy", "call", "graph"]) {
      for (const row of of(kind)) {
        if (!shown.has(row)) continue;
        for (const id of words(row.dataset.of)) {
          const owner = document.getElementById(id);
          if (owner && owner.dataset.kind) shown.add(owner);
        }
      }
    }
    for (const row of rows) row.hidden = !shown.has(row);
    const told = kinds.filter((kind) => totals[kind]).map((kind) => {
      const some = number(of(kind).filter((row) => shown.has(row))), all = totals[kind];
      return `${some === all ? "" : `${some} of `}${all} ${all === 1 ? kind : plurals[kind] || `${kind}s`}`;
    });
    count.textContent = told.length ? `${told.join(", ")} shown` : "";
    for (const box of document.querySelectorAll("[data-source]")) {
      const line = document.getElementById(box.dataset.source);
      box.classList.toggle("out", line.hidden);
      if (box.dataset.source === source) box.setAttribute("aria-current", "true");
      else box.removeAttribute("aria-current");
    }
    chosen.hidden = !source;
  };

  const choose = (id) => {
    source = id;
    const line = id && document.getElementById(id).querySelector("summary code").textContent;
    chosen.textContent = line ? `only ${line} ✕` : "";
    chosen.setAttribute("aria-label", line ? `only ${line}; show all again` : "");
    apply();
  };

  const sort = (table, index, head) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const key = (row) => row.cells[index].dataset.value;
    const numeric = head.classList.contains("n");
    const compare = (a, b) => numeric ? Number(key(a)) - Number(key(b))
      : a.cells[index].textContent.trim().localeCompare(b.cells[index].textContent.trim());
    const sorted = [...table.tBodies[0].rows].sort((a, b) => descending ? compare(b, a) : compare(a, b));
    table.tBodies[0].append(...sorted);
  };

  for (const table of document.querySelectorAll("table[data-sorted]")) {
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(table, index, head));
      head.replaceChildren(button);
    });
  }

  const bytes = (size) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; size >= 1024 && unit < 4; unit += 1) size /= 1024;
    return `${unit ? size.toFixed(1) : size} ${units[unit]}`;
  };

  // A chart is read by its slider, and by pointing at it.
  const readable = (figure) => {
    const chart = figure.querySelector("svg[data-step]"), cross = chart.querySelector(".cross");
    const slider = figure.querySelector("input"), output = figure.querySelector("output");
    const { step, nodes, whole } = chart.dataset;
    const curves = ["functional", "decided"].map((kind) => chart.dataset[kind].split(" ").map(Number));
    const [left, top, bottom, right] = chart.querySelector(".axis").getAttribute("d").match(/[\d.]+/g).map(Number);
    const lines = [...figure.closest("details").querySelectorAll(".functional-graph .l")];
    const show = () => {
      const point = Number(slider.value), first = point * step, last = Math.min(first + Number(step), nodes) - 1;
      // The sign before the line is no part of it.
      const line = whole ? lines[point].textContent.slice(lines[point].firstChild.textContent.length) : "";
      const [functional, decided] = curves.map((curve) => bytes(curve[point]));
      const name = first === last ? `node ${first}` : `nodes ${first} to ${last}, at most`;
      output.textContent = `${name}: ${decided} as decided, ${functional} with every candidate copied`
        + (line ? ` — ${line.slice(0, 80)}` : "");
      slider.setAttribute("aria-valuetext", output.textContent);
      const x = left + (right - left) * Math.min(first + step / 2, nodes) / nodes;
      cross.setAttribute("d", `M${x} ${top}V${bottom}`);
      cross.removeAttribute("hidden");
    };
    chart.addEventListener("pointermove", (event) => {
      const { left: begin, width } = chart.getBoundingClientRect();
      const x = (event.clientX - begin) * chart.viewBox.baseVal.width / width;
      const node = Math.floor((x - left) / (right - left) * nodes);
      slider.value = Math.max(0, Math.min(nodes - 1, node)) / step | 0;
      show();
    });
    slider.addEventListener("input", show);
    figure.querySelector(".reading").hidden = false;
    show();
  };

  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    const hidden = target.closest("[hidden]");
    if (hidden) hidden.hidden = false;
    const closed = target.closest("details");
    if (closed) closed.open = true;
    target.scrollIntoView({ block: target.matches("details") ? "start" : "center" });
    const focused = target.matches("details") ? target.querySelector("summary") : target;
    focused.focus({ preventScroll: true });
  };

  filter.addEventListener("input", apply);
  only.addEventListener("change", apply);
  chosen.addEventListener("click", () => {
    const box = document.querySelector(`[data-source="${source}"]`);
    choose("");
    box.focus();
  });
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const box = event.target.closest("[data-source]");
    if (box) choose(box.dataset.source);
    const link = event.target.closest("a[href^='#']");  // to where the page is already it changes no hash
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  // What is drawn when it is opened takes no time while the page loads.
  document.addEventListener("toggle", (event) => {
    const figure = event.target.open && event.target.querySelector("figure");
    if (figure && figure.querySelector(".reading").hidden) readable(figure);
  }, true);
  document.getElementById("bar").hidden = false;
  apply();
  reveal();
})();
