"use strict";
// Figures: the text's colour is the page's. In SVG it follows the colour scheme and print by itself;
// pixels are drawn again when the scheme changes.
const dark = matchMedia("(prefers-color-scheme: dark)");
const config = document.getElementById("vega-config").textContent;

async function draw(figure) {
  const target = figure.querySelector(".chart");
  const pixels = figure.dataset.renderer === "canvas";
  const ink = pixels ? getComputedStyle(target).color : "currentColor";
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const colours = JSON.parse(config.replaceAll('"@ink"', JSON.stringify(ink)));
  if (target.clientWidth < 520) colours.legend.columns = 2; // else names leave a narrow page
  if (figure.drawn) figure.drawn.finalize();
  const options = {
    renderer: figure.dataset.renderer,
    config: colours,
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: figure.id.replace("figure-", ""),
    tooltip: { theme: dark.matches ? "dark" : "light" },
  };
  figure.dispatchEvent(new CustomEvent("draw", { bubbles: true, detail: { spec, options } }));
  figure.drawn = await vegaEmbed(target, spec, options);
  figure.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));
}

const figures = [...document.querySelectorAll("figure[data-renderer]")];
Promise.all(figures.map(draw)).then(() => (document.documentElement.dataset.ready = figures.length));
dark.addEventListener("change", () => figures.forEach(draw));

// Tables: a click on a title sorts, numbers from the greatest; the button copies.
const value = (cell) => cell.dataset.v ?? cell.textContent;

function order(column, numeric, sign) {
  return (a, b) => {
    const [x, y] = [a, b].map((row) => value(row.cells[column]));
    if (x === y) return 0;
    if (x === "" || x === "–") return 1;
    if (y === "" || y === "–") return -1;
    return sign * (numeric ? x - y : x.localeCompare(y, "en", { numeric: true }));
  };
}

document.querySelectorAll("table:not(.live) thead th").forEach((head) => {
  head.querySelector("button").addEventListener("click", () => {
    const numeric = head.classList.contains("n");
    const was = head.getAttribute("aria-sort");
    const descending = was ? was === "ascending" : numeric;
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = head.closest("table").tBodies[0];
    body.append(...[...body.rows].sort(order(head.cellIndex, numeric, descending ? -1 : 1)));
  });
});

function tabSeparated(table) {
  const title = (cell) => [...cell.querySelector("button").childNodes].map((n) => n.textContent).join(", ");
  const line = (row) => [...row.cells].map((c) => (c.tagName === "TH" ? title(c) : value(c)));
  return [...table.rows].map((row) => line(row).map((t) => t.replace(/\s+/g, " ")).join("\t")).join("\n");
}

function copyByHand(text) {
  const area = document.body.appendChild(document.createElement("textarea"));
  area.value = text;
  area.select();
  document.execCommand("copy");
  area.remove();
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text); // a page from a file may not have the clipboard
  }
}

document.querySelectorAll(".tablehead > .copy").forEach((button) => {
  button.addEventListener("click", async () => {
    await copyText(tabSeparated(button.closest(".table").querySelector("table")));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
});
