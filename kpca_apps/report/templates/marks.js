// Shared by all pages with marks: marks with undo, files made of them, a bar, keys.
const markStore = (saved, changed) => {
  const marks = new Map(saved), undone = [];
  const store = {
    marks, unsaved: false,
    change(changes) {
      for (const [id, mark] of changes) mark ? marks.set(id, mark) : marks.delete(id);
      store.unsaved = true;
      changed(changes.map(([id]) => id));
    },
    put(changes) {
      undone.push(changes.map(([id]) => [id, marks.get(id)]));
      store.change(changes);
    },
    undo() {
      const last = undone.pop();
      if (last) store.change(last);
      return Boolean(last);
    },
  };
  addEventListener("beforeunload", (event) => { if (store.unsaved) event.preventDefault(); });
  return store;
};

const download = (name, type, text) => {
  const link = make("a", "", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
// Cells that a spreadsheet would run get an apostrophe, which is removed when they are read.
const FORMULA = /^(?:[\t\r\n]|[\p{Cf}\p{Cc}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/u;
const HARMLESS = /^(?:[+-]?[0-9][0-9.,' ]*(?:[eE][+-]?[0-9]+)?|[+-]?)$/;
const csv = (lines) => "\ufeff" + lines.map((line) => line.map((value) => {
  let text = value == null ? "" : String(value);
  if (FORMULA.test(text) && !HARMLESS.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}).join(",") + "\r\n").join("");
// Notes may come from others: escape characters that are invisible or reorder text, and
// combining marks beyond the third on a letter, as `names.visible` does.
const HIDDEN = /^[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/u;
const LINES = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const visible = (text) => {
  let marks = 0;
  return Array.from(text, (sign) => {
    marks = /[\p{Mn}\p{Me}]/u.test(sign) ? marks + 1 : 0;
    if (marks < 4 && !HIDDEN.test(sign)) return sign;
    const code = sign.codePointAt(0).toString(16), place = [2, 4, 8].find((n) => code.length <= n);
    return LINES[sign] || "\\" + { 2: "x", 4: "u", 8: "U" }[place] + code.padStart(place, "0");
  }).join("");
};
// Saves the original page with a new block of marks; returns its name.
const savePage = (block) => {
  const page = pristine.cloneNode(true);
  page.querySelector("#marks").textContent = JSON.stringify(block).replaceAll("<", "\\u003c");
  let name = "report";
  try {
    name = decodeURIComponent(location.pathname.split("/").pop()).replace(/\.html?$/i, "") || name;
  } catch { /* the name is not UTF-8 */ }
  name = name.replace(/-marked$/, "") + "-marked.html";
  download(name, "text/html", "<!DOCTYPE html>\n" + page.outerHTML + "\n");
  return name;
};

// A bar of buttons, [text, title, action] each, with the marks and the last action.
const markBar = (actions) => {
  const bar = make("div", "", { className: "workbar" });
  bar.setAttribute("role", "region");
  bar.setAttribute("aria-label", "Marks");
  const tally = make("span", "");
  const status = make("span", "", { className: "status" });
  status.setAttribute("role", "status");
  bar.append(tally);
  for (const [text, title, action] of actions) {
    const button = make("button", text, { type: "button", title });
    button.addEventListener("click", action);
    bar.append(button);
  }
  bar.append(status);
  document.querySelector("main").append(bar);
  return { bar, tally, say: (text) => { status.textContent = text; } };
};
const keyHelp = (keys) => {
  const help = make("dialog", "", { className: "keys" });
  help.append(make("h2", "Keys"));
  const list = make("dl", "");
  for (const [key, what] of keys) {
    const line = make("div", "");
    line.append(make("dt", key), make("dd", what));
    list.append(line);
  }
  const close = make("form", "", { method: "dialog" });
  close.append(make("button", "Close"));
  help.append(list, close);
  document.body.append(help);
  return help;
};
// Calls the function that `actionOf` returns for a key, outside fields and dialogs; Escape leaves a field.
const onKeys = (actionOf, leave) => addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=range]), select, textarea")) {
    if (event.key !== "Escape") return;
    event.preventDefault(); // which would empty a field for searching
    leave(event.target);
    return;
  }
  const action = actionOf(event);
  if (!action) return;
  event.preventDefault();
  action();
});
