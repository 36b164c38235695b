"use strict";
// The original page, to be saved again with its marks.
const pristine = document.getElementById("marks") && document.documentElement.cloneNode(true);
const make = (tag, text, properties = {}) =>
  Object.assign(document.createElement(tag), { textContent: text }, properties);
// The rows of each table that can be sorted and filtered, and functions that also hide rows.
const views = new Map();
(() => {
  // Copy buttons beside commands.
  for (const pre of document.querySelectorAll("pre.command")) {
    const button = make("button", "Copy", { type: "button" });
    button.setAttribute("aria-label", "Copy the command " + pre.textContent.slice(0, 60));
    const box = make("div", "", { className: "copyable" });
    pre.replaceWith(box);
    box.append(pre, button);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(pre);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // Lay out a long folded table in parts, so that opening it does not block the page.
  const PART = 200;
  const layOut = (rows) => {
    for (const row of rows.splice(0, PART)) row.classList.remove("later");
    if (rows.length) requestAnimationFrame(() => setTimeout(() => layOut(rows)));
  };
  const delay = (table, rows) => {
    const fold = table.closest("details:not([open])"), left = rows.slice(PART);
    if (!fold) return;
    for (const row of left) row.classList.add("later");
    const start = () => layOut(left);
    fold.addEventListener("toggle", start, { once: true });
    addEventListener("beforeprint", start, { once: true });
  };

  // Tables: sort by clicking a heading, filter by a word.
  const valueOf = (row, place) => {
    const cell = row.cells[place];
    const text = (cell.dataset.value ?? cell.textContent).trim();
    const number = text === "" ? NaN : Number(text.replaceAll(",", ""));
    return { text, number };
  };
  const compare = (a, b) => {
    if (!Number.isNaN(a.number) && !Number.isNaN(b.number)) return a.number - b.number;
    return a.text.localeCompare(b.text, undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("table[data-tools]")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const addHeading = (heading, name) => {
      const button = make("button", name, { type: "button" });
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const place = heading.cellIndex;
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        rows.sort((a, b) => {
          const [left, right] = [valueOf(a, place), valueOf(b, place)];
          // Cells without a value stay last in both directions.
          if ((left.text === "") !== (right.text === "")) return left.text === "" ? 1 : -1;
          return sign * compare(left, right);
        });
        body.replaceChildren(...rows);
        refresh();
      });
    };
    for (const heading of table.tHead.rows[0].cells) addHeading(heading, heading.textContent);
    const label = make("label", "Filter ");
    const input = make("input", "", { type: "search" });
    const status = make("span", "");
    status.setAttribute("role", "status");
    label.append(input);
    const bar = make("div", "", { className: "filter" });
    bar.append(label, status);
    table.closest(".scroll").before(bar);
    const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const filters = [], after = [];
    const refresh = () => {
      const wanted = input.value.trim().toLowerCase();
      const seen = new Map();
      let kept = 0;
      for (const row of rows) {
        row.hidden = !(words.get(row).includes(wanted) && filters.every((keeps) => keeps(row, seen)));
        const below = row.nextElementSibling;
        if (row.hidden && below?.classList.contains("detail")) below.remove();
        kept += row.hidden ? 0 : 1;
      }
      for (const tell of after) tell(seen);
      status.textContent = kept < rows.length || wanted ? kept + " of " + rows.length + " rows" : "";
    };
    input.addEventListener("input", refresh);
    delay(table, rows);
    const shown = () => rows.filter((row) => !row.hidden);
    views.set(table, { rows, bar, input, filters, after, refresh, shown, addHeading });
  }

  // Open all folds for printing, except whole rows, which would make the table endless.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".folds > details:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
