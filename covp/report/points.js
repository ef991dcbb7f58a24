"use strict";
// The points of a sweep: one copy of the data for all figures and the table, and what filters both.
{
  const { columns, palette } = JSON.parse(document.getElementById("points-data").textContent);
  const points = columns[0].cells.map((_, i) => ({ i }));
  for (const column of columns) {
    column.cells.forEach((cell, i) => {
      points[i][column.key] = column.levels && cell !== null ? column.levels[cell] : cell;
    });
    column.levels ??= [...new Set(column.cells)].filter((cell) => cell !== null).sort((a, b) => a - b);
    column.numeric = column.format !== "";
  }
  const differing = columns.filter((column) => column.levels.length > 1);
  const byKey = Object.fromEntries(columns.map((column) => [column.key, column]));
  const PREFIXES = { "-4": "p", "-3": "n", "-2": "µ", "-1": "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T" };

  function prefixed(number) {
    const step = number ? Math.floor(Math.log10(Math.abs(number)) / 3 + 1e-9) : 0;
    const power = Math.min(4, Math.max(-4, step));
    return Number((number / 1000 ** power).toPrecision(4)) + PREFIXES[power];
  }

  function text(column, cell) {
    if (cell === null) return "–";
    if (column.format.endsWith("s")) return prefixed(cell);
    return column.numeric ? cell.toLocaleString("en", { maximumSignificantDigits: 12 }) : cell;
  }

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // Filters: per column the levels that are left out, or the least and greatest; per figure a brush.
  const without = new Map();
  const range = new Map();
  const brushes = new Map();
  const MOST_BOXES = 12;

  function inRange(cell, [low, high]) {
    return cell !== null && cell >= low && cell <= high;
  }

  function passes(point) {
    for (const [key, levels] of without) if (levels.has(point[key])) return false;
    for (const [key, ends] of range) if (!inRange(point[key], ends)) return false;
    return true;
  }

  // Its ends come from pixels: a point at the edge of a logarithmic axis is not lost in rounding.
  function inBrush(point, brush) {
    return Object.entries(brush).every(([key, ends]) => {
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      return inRange(point[key], [low - 1e-9 * Math.abs(low), high + 1e-9 * Math.abs(high)]);
    });
  }

  // What each figure shows: the points that pass, chosen in the other figures.
  function shown(figure) {
    const others = [...brushes].filter(([one]) => one !== figure).map(([, brush]) => brush);
    return points.filter((point) => passes(point) && others.every((brush) => inBrush(point, brush)));
  }

  function tooltip(point) {
    const rows = differing.filter((c) => (point[c.key] ?? null) !== null).map((c) =>
      element("tr", {}, element("td", { className: "key", textContent: c.title }), element("td", { className: "value", textContent: text(c, point[c.key]) })));
    return element("table", {}, ...rows).outerHTML;
  }

  // A figure that reads the points gets them before it is drawn, and again when they change.
  const live = new Set();

  document.addEventListener("draw", ({ target: figure, detail: { spec, options } }) => {
    if (spec.data?.name !== "points") return;
    brushes.delete(figure);
    live.add(figure);
    if (spec.params?.some((param) => param.name === "brush")) options.tooltip.formatTooltip = tooltip;
    options.patch = (compiled) => {
      compiled.data.find((one) => one.name === "points").values = shown(figure);
      return compiled;
    };
  });

  document.addEventListener("drawn", ({ target: figure }) => {
    const { view } = figure.drawn;
    if (!live.has(figure) || !("brush" in view.getState({ signals: (name) => name === "brush" }).signals)) return;
    view.addSignalListener("brush", (_, brush) => {
      if (Object.keys(brush).length) brushes.set(figure, brush);
      else if (!brushes.delete(figure)) return;
      later(figure);
    });
  });

  let waiting = 0;
  function later(except) {
    clearTimeout(waiting);
    waiting = setTimeout(() => update(except), 60);
  }

  function update(except) {
    for (const figure of live) {
      if (figure !== except && figure.drawn) figure.drawn.view.data("points", shown(figure)).runAsync();
    }
    table.show(shown(null));
    const filters = without.size + range.size + brushes.size;
    reset.hidden = !filters;
  }

  // Colours: of few levels the palette, of many numbers a scale.
  const bar = document.getElementById("points-filters");
  const colours = new Map();

  function blend(part) {
    const [from, to] = [[51, 187, 238], [170, 68, 153]];
    return `rgb(${from.map((start, i) => Math.round(start + part * (to[i] - start)))})`;
  }

  function colourBy(key) {
    const { levels, numeric } = byKey[key];
    colours.clear();
    levels.forEach((level, i) => {
      const many = numeric && levels.length > palette.length;
      colours.set(level, many ? blend(i / (levels.length - 1)) : palette[i % palette.length]);
    });
    for (const point of points) point.colour = colours.get(point[key]) ?? palette.at(-1);
    bar.querySelectorAll("fieldset").forEach((set) => {
      set.classList.toggle("coloured", set.dataset.key === key);
      set.querySelectorAll("i").forEach((mark, i) => (mark.style.background = colours.get(levels[i])));
    });
  }

  function boxes(column) {
    const labels = column.levels.map((level) => {
      const box = element("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        const left = without.get(column.key) ?? new Set();
        if (box.checked) left.delete(level);
        else left.add(level);
        if (left.size) without.set(column.key, left);
        else without.delete(column.key);
        later();
      });
      return element("label", {}, box, element("i"), text(column, level));
    });
    return labels;
  }

  function ends(column) {
    const limits = [column.levels[0], column.levels.at(-1)];
    const inputs = ["least", "most"].map((word, i) => {
      const input = element("input", { type: "number", step: "any", placeholder: String(limits[i]), ariaLabel: `${word} ${column.title}` });
      input.addEventListener("input", () => {
        const chosen = inputs.map((one, j) => (one.value === "" ? (j ? Infinity : -Infinity) : Number(one.value)));
        if (inputs.some((one) => one.value !== "")) range.set(column.key, chosen);
        else range.delete(column.key);
        later();
      });
      return input;
    });
    return [inputs[0], " to ", inputs[1]];
  }

  function filter(column) {
    const few = column.role !== "objective" && column.levels.length <= MOST_BOXES;
    const title = element("legend", { textContent: column.title });
    const set = element("fieldset", {}, title, ...(few || !column.numeric ? boxes(column) : ends(column)));
    set.dataset.key = column.key;
    return set;
  }

  const filtered = differing.filter((c) => ["factor", "parameter", "objective"].includes(c.role));
  const choices = filtered.filter((c) => c.role !== "objective");
  const colour = element("select", { id: "points-colour" });
  colour.append(...choices.map((c) => element("option", { value: c.key, textContent: c.title })));
  colour.addEventListener("change", () => {
    colourBy(colour.value);
    update();
  });
  const reset = element("button", { type: "button", className: "copy", textContent: "Show all points", hidden: true });
  const count = element("output", { id: "points-count" });
  bar.append(
    element("div", { className: "filterhead" }, element("label", {}, "Colour by ", colour), count, reset),
    element("div", { className: "filters" }, ...choices.map(filter)),
    element("details", {}, element("summary", { textContent: "Limits" }),
      element("div", { className: "filters" }, ...filtered.filter((c) => c.role === "objective").map(filter))),
  );
  reset.addEventListener("click", () => {
    without.clear();
    range.clear();
    for (const figure of [...brushes.keys()]) figure.drawn.view.signal("brush_x", [0, 0]).signal("brush_y", [0, 0]).runAsync();
    brushes.clear();
    bar.querySelectorAll("input").forEach((input) => (input.type === "checkbox" ? (input.checked = true) : (input.value = "")));
    update();
  });

  // The table: one page of rows at a time; what is copied or saved are all that are shown.
  const table = (() => {
    const PAGE = 25;
    const place = document.getElementById("points-table");
    let rows = points;
    let page = 0;
    let sorted = null;
    const head = element("tr");
    const body = element("tbody");
    const status = element("output");
    const button = (label, click) => {
      const made = element("button", { type: "button", className: "copy", textContent: label });
      made.addEventListener("click", () => click(made));
      return made;
    };
    const pages = () => Math.max(1, Math.ceil(rows.length / PAGE));
    const move = (by) => {
      page = Math.min(pages() - 1, Math.max(0, page + by));
      draw();
    };

    function order(column, sign) {
      return (p, q) => {
        const [a, b] = [p[column.key], q[column.key]];
        if (a === b) return p.i - q.i;
        if (a === null) return 1;
        if (b === null) return -1;
        return sign * (column.numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
      };
    }

    function draw() {
      body.replaceChildren(
        ...rows.slice(page * PAGE, (page + 1) * PAGE).map((point) =>
          element("tr", {}, ...differing.map((c) => element("td", { className: c.numeric ? "n" : "", textContent: text(c, point[c.key]) })))),
      );
      const first = rows.length ? page * PAGE + 1 : 0;
      status.textContent = `${first}–${Math.min(rows.length, (page + 1) * PAGE)} of ${rows.length.toLocaleString("en")}`;
    }

    function arrange() {
      rows = [...rows].sort(sorted ? order(sorted.column, sorted.sign) : (p, q) => p.i - q.i);
    }

    function tabular(separator, quote) {
      const line = (cells) => cells.map((cell) => quote(cell ?? "")).join(separator);
      return [line(columns.map((c) => c.title)), ...rows.map((point) => line(columns.map((c) => point[c.key])))].join("\n");
    }

    async function copy(pressed) {
      await copyText(tabular("\t", (cell) => String(cell).replace(/\s+/g, " ")));
      pressed.textContent = "Copied";
      setTimeout(() => (pressed.textContent = "Copy"), 1500);
    }

    function save() {
      // a spreadsheet would compute a text that begins as a formula does
      const plain = (cell) => (/^[=+\-@\t\r\n]/.test(cell) && isNaN(cell) ? `'${cell}` : cell);
      const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell);
      const csv = tabular(",", (cell) => quoted(plain(cell)));
      const url = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
      element("a", { href: url, download: "points.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    }

    for (const column of differing) {
      const title = element("button", { type: "button", textContent: column.title });
      const cell = element("th", { scope: "col", className: column.numeric ? "n" : "" }, title);
      title.addEventListener("click", () => {
        sorted = { column, sign: sorted?.column === column ? -sorted.sign : 1 };
        for (const other of head.cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
        arrange();
        page = 0;
        draw();
      });
      head.append(cell);
    }
    place.append(
      element("div", { className: "tablehead" }, status,
        element("span", {}, button("‹", () => move(-1)), " ", button("›", () => move(1)), " ", button("Copy", copy), " ", button("CSV", save))),
      element("div", { className: "scroll", tabIndex: 0 }, element("table", { className: "live" }, element("thead", {}, head), body)),
    );
    return {
      show(some) {
        rows = some;
        page = 0;
        arrange();
        draw();
        count.textContent = `${some.length.toLocaleString("en")} of ${points.length.toLocaleString("en")} points`;
      },
    };
  })();

  colourBy(colour.value || columns[0].key);
  table.show(points);
}
