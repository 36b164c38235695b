// The ranked rows as a work list: kinds, filters, whole rows, marks, and files made of these.
(() => {
  const blocks = ["rows", "marks"].map((id) => document.getElementById(id));
  const table = document.querySelector("table.ranked");
  if (!table || blocks.includes(null)) return;
  const [data, saved] = blocks.map((block) => JSON.parse(block.textContent));
  const view = views.get(table);
  const list = table.closest("details");
  const KINDS = { wrong: "w", fine: "f", known: "n" };

  // A mark holds for all rows with the same visible cells, or for one row if some are hidden.
  const ident = (about) => about.key.startsWith("h") ? about.key + "/" + about.row : about.key;
  const aboutRow = (row) => known[row.dataset.row];
  const NONE = { kind: 0, why: [], major: 0, cells: [], expected: {}, odd: {}, near: [], seen: {}, group: "" };
  // One list for each field; 0 means empty.
  const known = {};
  for (const [place, row] of (data.rows.row ?? []).entries()) {
    known[row] = { ...NONE };
    for (const [name, values] of Object.entries(data.rows)) if (values[place]) known[row][name] = values[place];
    known[row].key = data.keys + (known[row].key ?? "");
  }
  // Cells without their columns.
  for (const about of [...Object.values(known), ...Object.values(data.usual)]) {
    about.cells = Object.fromEntries(about.cells.map((text, place) => [data.compared[place], text]));
  }
  const rowsOf = new Map(), cellsOf = new Map();
  for (const cell of data.cells) {
    if (cell.key) cellsOf.set(ident(cell), [...(cellsOf.get(ident(cell)) ?? []), cell]);
  }
  for (const row of view.rows) {
    const id = ident(aboutRow(row));
    rowsOf.set(id, [...(rowsOf.get(id) ?? []), row]);
  }
  // Including marks of rows that are no longer listed.
  const store = markStore(saved.marks.map((one) => [ident(one), one]), (ids) => show(ids));
  const { marks, put } = store;

  const placed = (id) => {
    const row = rowsOf.get(id)?.[0];
    const about = row ? aboutRow(row) : cellsOf.get(id)[0];
    const found = { key: about.key, row: about.row };
    if (about.line != null) found.line = about.line;
    if (about.id) found.id = about.id;
    return found;
  };
  const markAs = (ids, kind) => {
    // If all have this mark, a second press removes it.
    const same = ids.every((id) => marks.get(id)?.mark === kind);
    put(ids.map((id) => {
      const note = marks.get(id)?.note;
      return [id, same ? undefined : { ...placed(id), mark: kind, ...(note ? { note } : {}) }];
    }));
  };
  const undo = () => say(store.undo() ? "Undone." : "There is nothing to undo.");

  // Buttons of a row, an odd cell or all rows of a card.
  const groups = new Map(); // by their element what they mark
  const pattern = make("span", "", { className: "marks" });
  pattern.setAttribute("role", "group");
  for (const kind of Object.keys(KINDS)) {
    const button = make("button", kind, { type: "button", tabIndex: 0 });
    button.dataset.kind = kind;
    button.setAttribute("aria-pressed", "false");
    pattern.append(button);
  }
  const buttons = (ids, name) => {
    const box = pattern.cloneNode(true);
    box.setAttribute("aria-label", "Mark " + name);
    groups.set(box, ids);
    return box;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const ids = groups.get(button?.parentElement);
    if (ids) markAs(ids, button.dataset.kind);
    else if (button?.matches("tr[data-row] .more")) expand(button.closest("tr"));
  });
  const show = (ids) => {
    const changed = new Set(ids);
    for (const [box, ids] of groups) {
      if (!ids.some((id) => changed.has(id))) continue;
      for (const button of box.children) {
        const pressed = ids.every((id) => marks.get(id)?.mark === button.dataset.kind);
        button.setAttribute("aria-pressed", String(pressed));
      }
    }
    for (const row of [...changed].flatMap((id) => rowsOf.get(id) ?? [])) {
      const mark = marks.get(ident(aboutRow(row)));
      const open = row.nextElementSibling;
      if (open?.classList.contains("detail")) open.querySelector("input").value = mark?.note ?? "";
      row.dataset.mark = mark?.mark ?? "";
      const cell = row.querySelector(".mark");
      cell.dataset.value = mark?.mark ?? "";
      cell.querySelector(".own").textContent = mark?.note ? "\u201c" + visible(mark.note) + "\u201d" : "";
    }
    count();
    view.refresh();
  };

  // A column of marks.
  const heading = make("th", "", { scope: "col" });
  table.tHead.rows[0].append(heading);
  view.addHeading(heading, "mark");
  for (const row of view.rows) {
    const cell = make("td", "", { className: "mark" });
    cell.append(buttons([ident(aboutRow(row))], "row " + row.dataset.row), make("p", "", { className: "own" }));
    row.append(cell);
    row.tabIndex = -1;
  }
  for (const card of document.querySelectorAll(".card[data-rows]")) {
    const rows = card.dataset.rows.split(" ").filter((row) => known[row]);
    if (!rows.length) continue;
    const name = rows.length > 1 ? "these " + rows.length + " rows" : "row " + rows[0];
    card.append(buttons([...new Set(rows.map((row) => ident(known[row])))], name));
  }
  for (const cell of document.querySelectorAll("tr[data-cell]")) {
    const about = data.cells[Number(cell.dataset.cell)];
    if (about?.key) cell.querySelector(".why").append(buttons([ident(about)], "row " + about.row));
  }

  // Filters in addition to the one for words.
  const choose = (name, options) => {
    const label = make("label", name + " ");
    const select = make("select", "");
    for (const [value, text] of options) select.append(make("option", text, { value }));
    label.append(select);
    select.addEventListener("change", () => view.refresh());
    view.bar.append(label);
    return select;
  };
  const counted = (names) => {
    const counts = new Map();
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]);
  };
  const aboutRows = view.rows.map(aboutRow);
  const kinds = counted(aboutRows.map((about) => about.kind));
  const byKind = choose("kind of reason", [["", "all"], ...kinds.map(([kind, n]) => [kind, data.kinds[kind] + " (" + n + ")"])]);
  const columns = counted(aboutRows.flatMap((about) => [...new Set(about.why)]));
  const byColumn = choose("column", [["", "all"], ...columns.map(([column, n]) => [column, data.columns[column] + " (" + n + ")"])]);
  const groupNames = counted(aboutRows.map((about) => about.group));
  const byGroup = groupNames.length < 2 ? null : choose("group", [["", "all"], ...groupNames.map(([name, n]) => ["=" + name, (name || "other") + " (" + n + ")"])]);
  const byMark = choose("marked", [["", "all"], ["none", "not yet"], ["wrong", "wrong"], ["fine", "fine"], ["known", "known"]]);
  const fold = make("label", "");
  const folded = make("input", "", { type: "checkbox" });
  folded.addEventListener("change", () => view.refresh());
  fold.append(folded, " one row a kind");
  view.bar.append(fold);
  view.filters.push((row, seen) => {
    const about = aboutRow(row);
    const mark = marks.get(ident(about))?.mark ?? "none";
    const more = row.querySelector(".alike");
    if (more) more.remove();
    if (byKind.value !== "" && String(about.kind) !== byKind.value) return false;
    if (byColumn.value !== "" && !about.why.includes(Number(byColumn.value))) return false;
    if (byGroup?.value && "=" + about.group !== byGroup.value) return false;
    if (byMark.value && byMark.value !== mark) return false;
    if (!folded.checked) return true;
    const first = seen.get(about.kind);
    if (first) {
      first.n += 1;
      return false;
    }
    seen.set(about.kind, { row, n: 1 });
    return true;
  });
  view.after.push((seen) => {
    for (const { row, n } of seen.values()) {
      if (n < 2) continue;
      row.querySelector(".why").append(make("p", n + " rows of this kind", { className: "alike note" }));
    }
  });

  // The whole row beside its expected values and the most similar usual rows.
  const reads = (about, column) => about.cells[column] ?? about.seen[column] ?? "";
  const named = (about) => (about.id ? about.id + ", " : "") + (about.line != null ? "line " + about.line : "row " + about.row);
  const expand = (row) => {
    const open = row.nextElementSibling;
    row.querySelector(".more").setAttribute("aria-expanded", String(!open?.classList.contains("detail")));
    if (open?.classList.contains("detail")) return open.remove();
    const about = aboutRow(row), id = ident(about);
    const near = about.near.map((number) => data.usual[number]);
    const whole = make("table", "", { className: "whole" });
    const head = whole.createTHead().insertRow();
    for (const [place, name] of ["column", "reads", "expected", ...near.map((one) => "like it: " + named(one))].entries()) {
      const th = make("th", place > 2 ? "" : name, { scope: "col" });
      if (place > 2) th.append(make("bdi", name, { title: "one of the usual rows most like this one" }));
      head.append(th);
    }
    const body = whole.createTBody();
    // Differing cells come first.
    const places = [...about.why, ...Object.keys(about.odd).map(Number)];
    const differs = (column) => places.includes(column);
    const order = [...new Set([...Object.keys(about.cells), ...Object.keys(about.seen)])].map(Number);
    const place = (column) => (differs(column) ? places.indexOf(column) : places.length);
    order.sort((a, b) => place(a) - place(b));
    for (const column of order) {
      const line = body.insertRow();
      const th = make("th", "", { scope: "row" });
      th.append(make("bdi", data.columns[column]));
      line.append(th);
      const expected = about.expected[column] ?? "";
      if (differs(column)) line.className = "differs";
      for (const text of [reads(about, column), expected, ...near.map((one) => one.cells[column] ?? "")]) {
        line.insertCell().append(make("bdi", text));
      }
    }
    const box = make("div", "", { className: "scroll" });
    Object.assign(box, { tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Row " + about.row + " beside usual rows");
    box.append(whole);
    const note = make("input", "", { type: "text", maxLength: 2000, value: marks.get(id)?.note ?? "" });
    note.addEventListener("change", () => {
      const text = note.value.trim();
      if (!marks.has(id) && !text) return;
      if (!marks.has(id)) say("Marked wrong, with a note.");
      put([[id, { ...(marks.get(id) ?? { ...placed(id), mark: "wrong" }), note: text }]]);
    });
    const label = make("label", "Note ", { className: "noting" });
    label.append(note);
    const detail = make("tr", "", { className: "detail" });
    const cell = make("td", "", { colSpan: row.cells.length });
    cell.append(label, box);
    if (about.more) cell.append(make("p", "The other columns are in the scored table.", { className: "note" }));
    detail.append(cell);
    row.after(detail);
    return detail;
  };
  const more = make("button", "whole row", { type: "button", className: "more" });
  more.setAttribute("aria-expanded", "false");
  for (const row of view.rows) row.querySelector(".why").append(more.cloneNode(true));

  // The marks, and files made of them.
  const ofKind = (...wanted) => [...marks.values()].filter((mark) => wanted.includes(mark.mark));
  const writeAccept = () => {
    const lines = ofKind("fine", "known").map((one) => [one.key, one.row, one.line, one.id, one.mark, one.note]);
    if (!lines.length) return say("No row is marked fine or known yet.");
    download("accept.csv", "text/csv", csv([["row_key", "row", "line", "id", "mark", "note"], ...lines]));
  };
  const writeToFix = () => {
    const wrong = ofKind("wrong");
    if (!wrong.length) return say("No row is marked wrong yet.");
    // Odd cells have a suggested value; other cells have that of similar rows.
    const cellsToFix = (about) => {
      const odd = Object.keys(about.odd);
      return (odd.length ? odd : about.why.slice(0, about.major)).map((column) =>
        [data.columns[column], reads(about, column), about.odd[column], about.expected[column]]);
    };
    const lines = wrong.flatMap((one) => {
      const rows = rowsOf.get(ident(one))?.map(aboutRow);
      const cells = (cellsOf.get(ident(one)) ?? []).map((cell) => [...cell.fix, ""]);
      const found = rows ? rows.map((about) => [about, cellsToFix(about)]) : [[one, cells]];
      return found.flatMap(([about, cells]) =>
        (cells.length ? cells : [["", "", "", ""]]).map((cell) => [about.row, about.line, about.id, ...cell, one.note]));
    });
    const heads = ["row", "line", "id", "column", "reads", "suggested", "usual here", "note"];
    download("to-fix.csv", "text/csv", csv([heads, ...lines]));
  };
  const save = () => {
    const name = savePage({ ...saved, marks: [...marks.values()] });
    store.unsaved = false;
    count();
    say("Saved as " + name + ". Next time: kpca novelty screen TABLE --marks " + name);
  };
  const { bar, tally, say } = markBar([
    ["Undo", "u", undo],
    ["Save page with marks", "the same page, which --marks takes", save],
    ["accept.csv", "rows that are fine or known, for --accept", writeAccept],
    ["to-fix.csv", "cells of the rows that are wrong", writeToFix],
    ["?", "keys", () => help.showModal()],
  ]);
  const nRows = (kind) => ofKind(kind).reduce((n, mark) => n + (rowsOf.get(ident(mark))?.length ?? 1), 0);
  const count = () => {
    const words = Object.keys(KINDS).map((kind) => [nRows(kind), kind]).filter(([n]) => n);
    tally.textContent = words.length ? words.map(([n, kind]) => n + " " + kind).join(", ") + (store.unsaved ? ", not saved" : "") : "No row is marked.";
    bar.classList.toggle("idle", !words.length && !list.open);
  };
  list.addEventListener("toggle", count);

  const help = keyHelp([
    ["j, k or arrows", "next and previous row"], ["Enter", "whole row, beside usual ones"],
    ["w", "wrong: stays on top, and in to-fix.csv"], ["f", "fine: learned as normal, and not listed"],
    ["n", "known: not listed, and not learned"], ["c", "write a note (of a row without a mark: it is wrong)"], ["u", "undo"],
    ["/", "filter by words"], ["Escape", "leave a field"], ["?", "these keys"],
  ]);

  // Keys move through the rows as sorted and filtered.
  let current = null;
  const go = (row) => {
    if (!row) return;
    list.open = true;
    row.classList.remove("later");
    if (current) { current.tabIndex = -1; current.removeAttribute("aria-current"); }
    current = row;
    row.tabIndex = 0;
    row.setAttribute("aria-current", "true");
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const shown = view.shown();
    const place = shown.indexOf(current);
    go(shown[place < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(place + by, 0), shown.length - 1)]);
  };
  const marked = (kind) => {
    if (!current || current.hidden) return step(1);
    const shown = view.shown();
    const next = shown[shown.indexOf(current) + 1];
    markAs([ident(aboutRow(current))], kind);
    if (current.hidden) go(next ?? view.shown().at(-1));
  };
  table.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (row && row !== current) {
      current?.removeAttribute("aria-current");
      current = row;
      row.setAttribute("aria-current", "true");
    }
  });
  const ON_KEY = {
    j: () => step(1), k: () => step(-1), w: () => marked("wrong"), f: () => marked("fine"),
    n: () => marked("known"), u: undo, "?": () => help.showModal(),
    "/": () => { list.open = true; view.input.focus(); },
    c: () => {
      if (!current) return;
      const open = current.nextElementSibling;
      const detail = open?.classList.contains("detail") ? open : expand(current);
      detail.querySelector("input").focus();
    },
  };
  onKeys((event) => {
    const inList = event.target.matches("tr[data-row]");
    if (inList && event.key === "ArrowDown") return () => step(1);
    if (inList && event.key === "ArrowUp") return () => step(-1);
    if (inList && event.key === "Enter") return () => {
      expand(event.target)?.scrollIntoView({ block: "nearest" });
      event.target.scrollIntoView({ block: "nearest" });
    };
    return ON_KEY[event.key];
  }, (field) => { current ? go(current) : field.blur(); });

  show([...marks.keys()]);
})();
