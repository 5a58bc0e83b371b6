"use strict";
(() => {
  const bytes = (size) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"], exact = size;
    let unit = 0;
    for (; size >= 1024 && unit < 4; unit += 1) size /= 1024;
    return unit ? `${size.toFixed(1)} ${units[unit]} (${exact} B)` : `${exact} B`;
  };

  // One side of a program: its picture, and the table of what is held, which follow the slider.
  const sideOf = (element) => {
    const chart = element.querySelector("svg[data-live]");
    if (!chart) return null;
    const { positions, span, left, right, top, end } = Object.fromEntries(
      Object.entries(chart.dataset).map(([name, value]) => [name, Number(value)]));
    const live = chart.dataset.live.split(" ").map(Number);
    const lines = chart.dataset.lines ? chart.dataset.lines.split("\n") : [];
    const cross = chart.querySelector(".cross"), caption = element.querySelector("[data-caption]");
    const rows = [...element.querySelectorAll("tr[data-first]")];
    // Where the picture is wider than the window, the names stay, and the position is brought into sight.
    const window = chart.parentElement, scale = () => chart.viewBox.baseVal.width / chart.getBoundingClientRect().width;
    window.addEventListener("scroll", () => {
      chart.style.setProperty("--scrolled", `${window.scrollLeft * scale()}px`);
    });
    const follow = (x) => {
      const by = scale(), at = x / by, from = left / by, seen = window.clientWidth;
      if (at < window.scrollLeft + from || at > window.scrollLeft + seen) window.scrollLeft = at - (from + seen) / 2;
    };
    const show = (position) => {
      const x = left + (right - left) * (position + 0.5) / span;
      cross.setAttribute("d", `M${x} ${top}V${end}`);
      cross.removeAttribute("hidden");
      follow(x);
      let alive = 0;
      for (const row of rows) {
        row.hidden = !(Number(row.dataset.first) <= position && position < Number(row.dataset.end));
        alive += !row.hidden;
      }
      const isOver = position >= positions;
      caption.textContent = isOver ? `Position ${position}: the program has ended`
        : `Held at position ${position}: ${bytes(live[position])}, ${alive} of ${rows.length} rows`;
      const line = lines[position] ? ` — ${lines[position]}` : "";
      return [element.dataset.side, `${isOver ? "has ended" : bytes(live[position])}${line}`];
    };
    const positionAt = (event) => {
      const { left: begin, width } = chart.getBoundingClientRect();
      const at = (event.clientX - begin) * chart.viewBox.baseVal.width / width;
      return Math.floor((at - left) / (right - left) * span);
    };
    return { chart, show, positionAt };
  };

  for (const section of document.querySelectorAll("[data-program]")) {
    const slider = section.querySelector("input"), output = section.querySelector("output");
    if (!slider) continue;
    const sides = [...section.querySelectorAll("[data-side]")].map(sideOf).filter(Boolean);
    const show = () => {
      const position = Number(slider.value);
      const told = sides.map((side) => side.show(position));
      output.textContent = told.length === 1 ? `position ${position}: ${told[0][1]}`
        : [`position ${position}`, ...told.map(([name, text]) => `${name}: ${text}`)].join("\n");
      slider.setAttribute("aria-valuetext", output.textContent);
    };
    for (const side of sides) {
      side.chart.addEventListener("click", (event) => {
        slider.value = Math.max(0, Math.min(Number(slider.max), side.positionAt(event)));
        show();
      });
    }
    slider.addEventListener("input", show);
    section.querySelector(".reading").hidden = false;
    show();
  }
})();
