"use strict";
(() => {
  const filter = document.getElementById("filter"), only = document.getElementById("only");
  const count = document.getElementById("count");
  const rows = [...document.querySelectorAll("[data-outcome]")];
  const texts = new Map(rows.map((row) => [row, (row.dataset.text || row.textContent).toLowerCase()]));

  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = { test: 0, clone: 0, graph: 0 };
    for (const row of rows) {
      const meant = only.value === "all"
        || (only.value === "clones" && row.dataset.clones !== "0")
        || only.value === row.dataset.outcome;
      row.hidden = !(meant && words.every((word) => texts.get(row).includes(word)));
      if (!row.hidden) shown[row.dataset.kind] += 1;
    }
    count.textContent = `${shown.test} tests, ${shown.clone} clones, ${shown.graph} graphs shown`;
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

  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(table, index, head));
      head.replaceChildren(button);
    });
  }

  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    const closed = target.closest("details");
    if (closed) {
      closed.hidden = false;
      closed.open = true;
    }
    target.scrollIntoView({ block: "center" });
    const focused = target.matches("details") ? target.querySelector("summary") : target;
    focused.focus({ preventScroll: true });
  };

  filter.addEventListener("input", apply);
  only.addEventListener("change", apply);
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {  // a link to where the page is already changes no hash
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  document.getElementById("bar").hidden = false;
  apply();
  reveal();
})();
