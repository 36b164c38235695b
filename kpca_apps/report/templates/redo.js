// Images to denoise again with their own options: marks, and the table for --per-image.
(() => {
  const blocks = ["redo", "marks"].map((id) => document.getElementById(id));
  if (blocks.includes(null)) return;
  const [data, saved] = blocks.map((block) => JSON.parse(block.textContent));
  const NUMBERS = { strength: [0, 1, 0.05], luma: [0, 1000, 0.05], chroma: [0, 1000, 0.05] };
  const KEYS = { weaker: "w", stronger: "s", "high quality": "h", "denoise it": "d" };
  const items = new Map(); // what stands for an image on the page, and what is known of the image
  const forms = new Map(), groups = new Map(); // by the names of the images
  for (const [number, about] of Object.entries(data.images)) {
    const item = document.getElementById("image-" + number)?.closest("article, tr");
    if (item) items.set(item, about);
  }
  const table = document.querySelector("tr #image-1")?.closest("table");
  const view = table && views.get(table);
  const shown = () => {
    const all = table ? [...table.tBodies[0].rows] : [...document.querySelectorAll("article.image")];
    return all.filter((one) => items.has(one) && !one.hidden);
  };

  const store = markStore(saved.marks.map((one) => [one.file, one]), (files) => show(files));
  const { marks } = store;
  const words = (mark) => {
    const options = data.options.filter((one) => mark?.[one] != null).map((one) => one + " " + mark[one]);
    return [...options, ...(mark?.note ? ["\u201c" + visible(mark.note) + "\u201d"] : [])].join(", ");
  };
  const isNew = (about) => {
    const mark = marks.get(about.file) ?? {};
    return Boolean(mark.note) || data.options.some((one) => (mark[one] ?? null) !== (about.own?.[one] ?? null));
  };
  const put = (file, values) => {
    const mark = { file };
    for (const [name, value] of Object.entries({ ...marks.get(file), ...values })) {
      if (value !== "" && value != null) mark[name] = value;
    }
    store.put([[file, Object.keys(mark).length > 1 ? mark : undefined]]);
  };
  const has = (file, values) => Object.entries(values).every(([name, value]) => marks.get(file)?.[name] === value);
  const toggle = (file, values) => {
    const none = Object.fromEntries(Object.keys(values).map((name) => [name, null]));
    put(file, has(file, values) ? none : values);
  };
  const undo = () => say(store.undo() ? "Undone." : "There is nothing to undo.");

  // All options of an image, under it.
  const field = (name, input) => {
    const label = make("label", name + " ");
    label.append(input);
    return label;
  };
  const makeForm = (about) => {
    const box = make("div", "", { className: "options" });
    const inputs = new Map();
    for (const option of [...about.options, "note"]) {
      let input;
      if (data.offered[option]) {
        input = make("select", "");
        for (const text of ["", ...data.offered[option]]) input.append(make("option", text || "as for all", { value: text }));
      } else if (NUMBERS[option]) {
        const [min, max, step] = NUMBERS[option];
        input = make("input", "", { type: "number", min, max, step: "any", placeholder: about.used[option] });
        input.addEventListener("keydown", (event) => {
          // If the field is empty, step from the value used.
          const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
          if (!up) return;
          event.preventDefault();
          const value = Number(input.value || about.used[option]) + up * step;
          input.value = Number(Math.min(Math.max(value, min), max).toFixed(3));
          input.dispatchEvent(new Event("change"));
        });
      } else {
        const isNote = option === "note";
        input = make("input", "", { type: "text", maxLength: isNote ? 2000 : 40 });
        if (!isNote) Object.assign(input, { pattern: "auto|[0-9]*[.]?[0-9]+(e(\\+|-)?[0-9]+)?", placeholder: "a level or auto" });
      }
      input.addEventListener("change", () => {
        if (!input.checkValidity()) return say(option + ": " + input.validationMessage);
        const text = input.value.trim();
        const isNumber = text !== "" && option !== "note" && !data.offered[option] && text !== "auto";
        put(about.file, { [option]: isNumber ? Number(text) : text });
      });
      inputs.set(option, input);
      box.append(field(option, input));
    }
    const refresh = () => {
      const mark = marks.get(about.file);
      for (const [option, input] of inputs) input.value = mark?.[option] ?? "";
    };
    forms.set(about.file, { refresh, inputs });
    refresh();
    return box;
  };
  const isOpen = (item) => Boolean(item.redoing?.isConnected);
  const open = (item) => {
    if (isOpen(item)) return forms.get(items.get(item).file);
    const form = makeForm(items.get(item));
    if (item.matches("tr")) {
      const cell = make("td", "", { colSpan: item.cells.length });
      cell.append(form);
      item.redoing = make("tr", "", { className: "detail" });
      item.redoing.append(cell);
      item.after(item.redoing);
    } else {
      item.redoing = form;
      item.querySelector(".redo").after(form);
    }
    item.querySelector(".more").setAttribute("aria-expanded", "true");
    return forms.get(items.get(item).file);
  };
  const close = (item) => {
    item.redoing.remove();
    item.querySelector(".more").setAttribute("aria-expanded", "false");
  };

  const buttons = (item, about) => {
    const box = make("span", "", { className: "marks" });
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Redo " + visible(about.file));
    for (const [name, values] of Object.entries(about.presets)) {
      const title = words(values) + (KEYS[name] ? " (key " + KEYS[name] + ")" : "");
      const button = make("button", name, { type: "button", title, values });
      button.addEventListener("click", () => toggle(about.file, values));
      box.append(button);
    }
    const more = make("button", "options", { type: "button", className: "more" });
    more.setAttribute("aria-expanded", "false");
    more.addEventListener("click", () => isOpen(item) ? close(item) : open(item));
    const own = make("span", "", { className: "own" });
    groups.set(about.file, { item, box, own });
    return [box, more, own];
  };
  view?.after.push(() => {
    for (const item of items.keys()) item.querySelector(".more")?.setAttribute("aria-expanded", String(isOpen(item)));
  });
  if (table) {
    const heading = make("th", "redo with", { scope: "col" });
    table.tHead.rows[0].append(heading);
    view?.addHeading(heading, "redo with");
  }
  for (const [item, about] of items) {
    item.tabIndex = -1;
    if (table) {
      const cell = make("td", "", { className: "mark" });
      cell.append(...buttons(item, about));
      item.append(cell);
      continue;
    }
    const line = make("p", "Redo: ", { className: "redo" });
    line.append(...buttons(item, about));
    item.querySelector(".facts").after(line);
    const viewer = viewers.get(item.querySelector(".views"));
    if (!viewer?.sliders.strength) continue;
    const { strength, chroma } = viewer.sliders;
    const take = make("button", chroma ? "Redo with these" : "Redo with this strength", { type: "button" });
    const valueOf = (slider) => Number(Number(slider.value).toFixed(3));
    take.addEventListener("click", () => put(about.file, {
      strength: valueOf(strength), ...(chroma && chroma.value !== chroma.max ? { chroma: valueOf(chroma) } : {}),
    }));
    viewer.bar.append(take);
  }
  const show = (files) => {
    for (const file of files) {
      const group = groups.get(file);
      if (!group) continue;
      const { item, box, own } = group;
      const changed = isNew(items.get(item));
      for (const button of box.children) button.setAttribute("aria-pressed", String(has(file, button.values)));
      own.textContent = words(marks.get(file));
      item.toggleAttribute("data-redo", changed);
      if (own.parentElement.matches(".mark")) own.parentElement.dataset.value = changed ? own.textContent : "";
      forms.get(file)?.refresh();
    }
    // Unsaved marks stay in their tab while the page of one image is open.
    for (const link of table?.querySelectorAll("a") ?? []) link.target = store.unsaved ? "_blank" : "";
    count();
  };

  const writeTable = () => {
    const lines = [...marks.values()].map((mark) => ["file", ...data.options, "note"].map((name) => mark[name]));
    if (!lines.length) return say("No image is marked yet.");
    download("per-image.csv", "text/csv", csv([["file", ...data.options, "note"], ...lines]));
    say("Run the command of this report again with --per-image per-image.csv --force: only changed images are denoised again.");
  };
  const save = () => {
    const name = savePage({ ...saved, marks: [...marks.values()] });
    store.unsaved = false;
    show([]);
    say("Saved as " + name + ".");
  };
  const { bar, tally, say } = markBar([
    ["Undo", "u", undo],
    ["Save page with marks", "the same page, to continue later", save],
    ["per-image.csv", "options of single images, for --per-image", writeTable],
    ["?", "keys", () => help.showModal()],
  ]);
  const count = () => {
    const n = [...items.values()].filter(isNew).length;
    tally.textContent = n ? n + (n === 1 ? " image" : " images") + " marked" + (store.unsaved ? ", not saved" : "") : "No image is marked.";
    bar.classList.toggle("idle", !n);
  };
  const help = keyHelp([
    ["j, k", "next and previous image"], ["w, s", "weaker, stronger"], ["h", "high quality"],
    ["d", "denoise one that was left as it was"], ["r", "all options"], ["c", "write a note"], ["u", "undo"],
    ...(view ? [["/", "filter by words"]] : []),
    ...(viewers.size ? [["0, 1, 2, 4", "pictures fitted, 1:1, 2:1, 4:1"], ["+, -", "larger, smaller; also by Ctrl and the wheel"],
      ["Shift and arrows", "move the picture; also by dragging it"], ["arrows, on a picture", "move the line"]] : []),
    ["Escape", "leave a field"], ["?", "these keys"],
  ]);

  // Keys move through the images as sorted and filtered.
  let current = null;
  const mind = (item) => {
    current?.removeAttribute("aria-current");
    current = item;
    item.setAttribute("aria-current", "true");
  };
  const go = (item) => {
    if (!item) return;
    mind(item);
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: table ? "nearest" : "start" });
  };
  const step = (by) => {
    const all = shown(), place = all.indexOf(current);
    go(all[place < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + by, 0), all.length - 1)]);
  };
  addEventListener("focusin", (event) => {
    const item = event.target.closest("article.image, tr");
    if (items.has(item) && item !== current) mind(item);
  });
  const preset = (name) => {
    if (!current || current.hidden) return step(1);
    const { file, presets } = items.get(current);
    presets[name] ? toggle(file, presets[name]) : say("Not for " + visible(file) + ".");
  };
  const write = (option) => {
    if (!current || current.hidden) return;
    const { inputs } = open(current);
    (inputs.get(option) ?? inputs.values().next().value).focus();
  };
  const ON_KEY = {
    j: () => step(1), k: () => step(-1), u: undo, "?": () => help.showModal(),
    r: () => write("strength"), c: () => write("note"), "/": view && (() => view.input.focus()),
    ...Object.fromEntries(Object.entries(KEYS).map(([name, key]) => [key, () => preset(name)])),
  };
  onKeys((event) => {
    const inList = table && items.has(event.target);
    if (inList && !event.shiftKey && event.key === "ArrowDown") return () => step(1);
    if (inList && !event.shiftKey && event.key === "ArrowUp") return () => step(-1);
    return ON_KEY[event.key];
  }, (input) => { current ? go(current) : input.blur(); });

  show([...marks.keys()]);
})();
