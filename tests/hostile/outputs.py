"""Checks that hold for everything a run writes or prints, whatever texts it was given."""

import ast
import base64
import csv
import hashlib
import io
import json
import re
import struct
import tokenize
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

VOID = {"meta", "br", "img", "input", "hr"}
# Elements that no page needs: they run code, load files, or change what addresses mean.
FORBIDDEN = {
    "iframe", "frame", "object", "embed", "applet", "form", "link", "base", "audio", "video",
    "source", "portal", "foreignobject", "animate", "set", "marquee", "noscript", "template",
    "textarea", "math",
}  # fmt: skip
# An address within the page or of a file near it: no scheme, no host, no root.
ADDRESS = re.compile(r"(?:\.\./)*(?:[\w.%~()!*'-]+/)*[\w.%~()!*'-]*(?:#[\w-]+)?\Z")
ISOLATING = {"bdi", "title", "code", "dt", "option", "text", "svg", "button", "output"}
# Characters that start a formula if they are the first visible character of a cell.
STARTS = "=+-@\uff1d\uff0b\uff0d\uff20"
NUMBER = re.compile(
    r"[+-]?(?:[0-9][0-9.,'\u2019\u00a0\u202f ]*(?:[eE][+-]?[0-9]+)?.{0,12})?\Z", re.DOTALL
)
PNG_CHUNKS = {b"IHDR", b"IDAT", b"IEND", b"pHYs", b"PLTE", b"tRNS", b"sRGB", b"gAMA"}


def unshowable(text: str, allowed: str = "\n") -> list[str]:
    """Return control and invisible characters, and those that reorder text."""
    bad = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}
    return [ascii(x) for x in {*text} - {*allowed} if unicodedata.category(x) in bad]


def hidden_in(shown: str) -> list[str]:
    """Return unprintable characters of a page's text, except the bidi isolates of our captions."""
    bare = re.sub("\u2068([^\u2068\u2069]*)\u2069", r"\1", shown)
    return unshowable(bare, "\n\t")


class _Page(HTMLParser):
    """Collects the faults of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.policy, self.scripts, self.texts = "", list[str](), list[str]()
        self.data = False
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another element")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:40]!a}")

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self._block(data)
        elif inside != "style":
            self.texts.append(data)
            self._show(data, "text")
            if any(unicodedata.bidirectional(x) in ("R", "AL") for x in data):
                if not ISOLATING & {*self.open}:
                    self.faults.append(f"may reorder what is around it: {data[:60]!a}")

    def _block(self, data: str) -> None:
        if self.data:
            json.loads(data)
        else:
            self.scripts.append(data)

    def _look(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        if tag in FORBIDDEN or len(values) != len(attrs):
            self.faults.append(f"<{tag} {attrs}>"[:200])
        self.data = values.get("type") == "application/json"
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        elif "http-equiv" in values:
            self.faults.append(f"<meta {values}>")
        for key, value in values.items():
            self._show(value, f"{tag} {key}")
            if key.startswith("on") or key in ("srcdoc", "action", "formaction", "ping", "srcset"):
                self.faults.append(f"{tag} {key}={value[:60]!a}")
            if key in ("href", "xlink:href") and not ADDRESS.match(value):
                self.faults.append(f"leads to {value[:80]!a}")
            if key == "src" and not value.startswith("data:image/"):
                self.faults.append(f"loads {value[:80]!a}")
            if key == "style" and re.search(r"url\((?!#)|@import|expression", value):
                self.faults.append(f"style {value[:80]!a}")

    def _show(self, text: str, where: str) -> None:
        if hidden := hidden_in(text):
            self.faults.append(f"{where} has {hidden[:4]}: {text[:60]!a}")


def page(data: bytes) -> list[str]:
    """Find forbidden parts of a page: foreign scripts, addresses, invisible text."""
    html = data.decode("utf-8")
    seen = _Page(html)
    faults = seen.faults
    if "<html" in html:  # a whole report; a notebook shows only a fragment
        digests = [
            base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in seen.scripts
        ]
        if len(digests) != 1 or f"'sha256-{digests[0]}'" not in seen.policy:
            faults.append("has another script than its own")
        if "default-src 'none'" not in seen.policy:
            faults.append("has no policy")
    elif seen.scripts:
        faults.append("a part of a page has a script")
    return faults


def is_formula(cell: str) -> bool:
    """Return True if a spreadsheet may run a cell: it starts like a formula and is no number."""
    if cell[:1] in ("\t", "\r", "\n"):
        return True
    rest = "".join(x for x in cell if unicodedata.category(x) not in ("Cc", "Cf")).lstrip()
    if rest[:1] not in STARTS or not rest:
        return False
    return rest[0] not in "+-" or not re.match(r"[+-](?:[0-9]|\Z)", cell)


def rows_of_csv(data: bytes) -> list[str]:
    """Find the cells of a CSV file that a spreadsheet would run as formulas."""
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    cells = [cell for row in rows for cell in row]
    return [f"runs: {cell[:60]!a}" for cell in cells if is_formula(cell)]


def workbook(data: bytes) -> list[str]:
    """Find a workbook's formulas, links and parts that refer to other files."""
    faults = []
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        for name in book.namelist():
            text = book.read(name)
            root = ElementTree.fromstring(text) if name.endswith((".xml", ".rels")) else None
            tags = [] if root is None else [node.tag.rpartition("}")[2] for node in root.iter()]
            if {"f", "hyperlink", "oleObject", "ddeLink", "externalReference"} & {*tags}:
                faults.append(f"{name} has {sorted({*tags})}")
            if b'TargetMode="External"' in text or b"<!DOCTYPE" in text or b"<!ENTITY" in text:
                faults.append(f"{name} leads elsewhere")
            if "externalLinks" in name or name.endswith(".bin"):
                faults.append(name)
    return faults


def picture(data: bytes) -> list[str]:
    """Find chunks of a PNG that hold anything but a picture."""
    place, faults = 8, []
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        if kind not in PNG_CHUNKS:
            faults.append(f"has a part {kind!r}")
        place += length + 12
    return faults


def document(data: bytes) -> list[str]:
    """Find lines that are not JSON, and characters that a reader of the file does not see."""
    text = data.decode("utf-8")
    for line in (
        text.splitlines() if "\n{" in text.strip() and not text.startswith("{\n") else [text]
    ):
        json.loads(line)
    return [f"has {sign}" for sign in unshowable(text)]


def printed(data: bytes) -> list[str]:
    """Find characters in a command's output that a terminal would obey."""
    text = data.decode("utf-8", "surrogateescape")
    faults = [f"says {sign}" for sign in unshowable(text)]
    return faults + [f"has a {w}" for w in ("Traceback", "a bug in kpca") if w in text]


def python(data: bytes) -> list[str]:
    """Find Python that is more than names, literals and calls of the export's helpers."""
    text = data.decode("utf-8")
    ast.parse(text)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    return [f"calls {name}" for name in names & {"pwned", "window", "eval", "exec", "open", "os"}]


def yaml(data: bytes) -> list[str]:
    """Find entries of an exported YAML file that are not checks."""
    import yaml as library

    checks = library.safe_load(data.decode("utf-8"))
    expected = {"name", "criticality", "check"}
    return [f"has {check}" for check in checks if {*check} != expected]


def sql(data: bytes) -> list[str]:
    """Find SQL statements, outside quotes, that the export does not write."""
    text = data.decode("utf-8")
    bare = re.sub(r"--[^\n]*|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'", " ", text)
    # The export begins with temporary macros that read cells; skip them.
    macro = re.compile(r"CREATE OR REPLACE TEMP MACRO kpca_\w+\(cell\) AS\b")
    statements = (part.strip() for part in bare.split(";"))
    starts = {text.split()[0] for text in statements if text and not macro.match(text)}
    return [f"does {word}" for word in starts - {"SELECT"}] + [
        f"has {word}" for word in re.findall(r"pwned|DROP|ATTACH|COPY|INSTALL|--|/\*", bare)
    ]


CHECKS: dict[str, Callable[[bytes], list[str]]] = {
    ".html": page,
    ".csv": rows_of_csv,
    ".xlsx": workbook,
    ".png": picture,
    ".json": document,
    ".jsonl": document,
    ".txt": printed,
    ".py": python,
    ".yaml": yaml,
    ".sql": sql,
}


def faults_of(folder: Path) -> Iterator[str]:
    """Yield the faults that the functions in `CHECKS` find in the files below a folder."""
    for path in sorted(folder.rglob("*")):
        check = CHECKS.get(path.suffix)
        if check is not None and path.is_file():
            where = ascii(str(path.relative_to(folder)))[:120]
            try:
                faults = check(path.read_bytes())
            except Exception as error:  # an unreadable file is a fault as well
                faults = [f"{type(error).__name__}: {str(error)[:200]!a}"]
            yield from (f"{where}: {fault}" for fault in dict.fromkeys(faults))


def count_of(folder: Path) -> dict[str, int]:
    """Count the checked files below a folder by kind."""
    kinds = [path.suffix for path in folder.rglob("*") if path.is_file()]
    return {kind: kinds.count(kind) for kind in CHECKS if kind in kinds}


def texts_in(folder: Path) -> str:
    """Return all text in the files below a folder, as people see it."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            found += _Page(path.read_text("utf-8")).texts
        elif path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as book:
                for name in book.namelist():
                    if name.endswith(".xml"):
                        found += ElementTree.fromstring(book.read(name)).itertext()
        elif path.suffix in (".json", ".csv", ".txt", ".jsonl", ".sql", ".py", ".yaml"):
            found.append(path.read_text("utf-8", "surrogateescape"))
    return "\n".join(found)
