"""Put all hostile texts into every place that untrusted text can come from.

Each function here fills a folder and runs the commands that read its files. The commands' files and
printed output go to the folder's subfolder `out`, which `outputs.py` checks.

`python -m tests.hostile.everywhere` runs all of them and prints counts; see
`test_texts_everywhere.py`.
"""

import argparse
import contextlib
import io
import json
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from kpca_apps import find_rules, screen_table
from kpca_apps.cli.main import main
from kpca_apps.names import is_pattern, visible
from kpca_apps.novelty.screening.model import load_model, save_model
from tests.hostile import metadata
from tests.hostile.outputs import count_of, faults_of, texts_in
from tests.hostile.tables import as_csv
from tests.hostile.texts import NULS, TEXTS, file_names
from tests.novelty.tables import frame_of

OUT = Path("out")  # files and printed output, in the working folder
FLAGS = ("--count", "40", "--flagged", "xlsx", "--to-send")
rng = np.random.default_rng(0)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def kpca(*words: object, code: int | None = 0) -> str:
    """Run a command with a terminal as its stdout; save what it prints as files."""
    given = [str(word) for word in words]
    OUT.mkdir(exist_ok=True)
    with (
        contextlib.redirect_stdout(_Terminal()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        ended = main(given)
    number = sum(1 for _ in OUT.glob("printed-*"))
    text = out.getvalue() + err.getvalue()
    (OUT / f"printed-{number:04}.txt").write_text(text, "utf-8", "surrogateescape")
    if code is not None and ended != code:
        raise AssertionError(f"{given[:4]!a} ended with {ended}: {err.getvalue()[-400:]!a}")
    return out.getvalue()


def columns(n_rows: int, names: Sequence[str]) -> dict[str, list[float]]:
    """Return correlated columns, whose last rows break the correlation."""
    size = rng.normal(size=n_rows)
    found = {}
    for place, name in enumerate(names):
        values = size + 0.1 * rng.normal(size=n_rows)
        if place % 3 == 0:
            values[-3:] = 9.0
        found[name] = [round(float(value), 3) for value in values]
    return found


def write_csv(path: str, cells: dict[str, list[Any]]) -> None:
    rows = [tuple(map(str, row)) for row in zip(*cells.values(), strict=True)]
    Path(path).write_bytes(as_csv(tuple(cells), rows))


def rule_outputs(table: str, *words: object) -> None:
    """Find the rules of a table; write and print them in every format."""
    kpca("novelty", "rules", table, *words)
    kpca("novelty", "rules", table, "--out", OUT / "rules.json", *words)
    for kind in ("sql", "py", "yaml", "txt"):
        out = OUT / f"rules.{kind}"
        kpca("novelty", "rules", table, "--rules", OUT / "rules.json", "--out", out, code=None)
    for kind in ("json", "sql", "pandera", "dqx"):
        kpca("novelty", "rules", table, "--rules", OUT / "rules.json", "--format", kind, code=None)


def column_names() -> None:
    """Put hostile texts into the column names of a text file."""
    write_csv("names.csv", columns(60, TEXTS))
    kpca("novelty", "screen", "names.csv", *FLAGS, "--out", OUT / "screened")
    kpca("novelty", "screen", "names.csv", "--dry-run")
    kpca("novelty", "screen", "names.csv", "--dry-run", "--json")
    model = OUT / "screened/model.kpca"
    kpca("novelty", "score", model, "names.csv", "--out", OUT / "scored", "--format", "same")
    for word in ((), ("--json",)):
        kpca("novelty", "explain", model, "names.csv", "--line", 59, *word)
    rule_outputs("names.csv")
    for text in TEXTS[::20]:
        kpca("novelty", "screen", "names.csv", "--id", f"{text}?", code=2)


def cells_of(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return a table with the texts as identifiers, as rare values, and where numbers belong."""
    n, rows = len(texts), 6 * len(texts)
    cells: dict[str, list[Any]] = {"id": [*texts, *(f"n{row}" for row in range(rows - n))]}
    for place in range(4):
        usual = [f"usual {row % 3}" for row in range(rows)]
        usual[place:n:4] = texts[place::4]
        cells[f"word {place}"] = usual
    numbers = columns(rows, [f"number {place}" for place in range(8)])
    for place, values in enumerate(numbers.values()):
        spoilt: list[Any] = [*values]
        spoilt[n + place : 2 * n : 8] = texts[place::8]
        cells[f"number {place}"] = spoilt
    cells["kind"] = ["odd" if row < n else "usual" for row in range(rows)]
    return cells


def cells() -> None:
    """Put hostile texts into a text file: as identifiers, as words, and in place of numbers."""
    write_csv("cells.csv", cells_of(TEXTS))
    words = ("--id", "id", "--label", "kind", "--positive", "odd", "--count", len(TEXTS))
    kpca("novelty", "screen", "cells.csv", *words, *FLAGS[2:], "--out", OUT / "screened")
    kpca("novelty", "screen", "cells.csv", *words, "--out", OUT / "as list", "--format", "same")
    model = OUT / "screened/model.kpca"
    for text in TEXTS[::20]:
        for word in ((), ("--json",)):
            kpca("novelty", "explain", model, "cells.csv", f"--row={text}", *word, code=None)
    for text in TEXTS[::20]:
        kpca("novelty", "screen", "cells.csv", f"--positive={text}?", "--label", "kind", code=2)
    kpca("novelty", "compare", "cells.csv", "--label", "kind", "--out", OUT / "compared")
    rule_outputs("cells.csv", "--id", "id")


def groups() -> None:
    """Put hostile texts into group values and labels."""
    names = [text for text in [text for text in TEXTS if text.strip()][::3] for _ in range(50)]
    cells: dict[str, list[Any]] = {"group": names, **columns(len(names), ["a", "b", "c"])}
    write_csv("groups.csv", cells)
    kpca("novelty", "screen", "groups.csv", "--by", "group", *FLAGS, "--out", OUT / "screened")
    kpca("novelty", "screen", "groups.csv", "--label", "group", code=2)


def other_files() -> None:
    """Put hostile texts and NUL into names, cells and metadata of JSON, Parquet and Arrow."""
    texts = (*TEXTS, *NULS)
    cells = {
        **cells_of(texts),
        **columns(6 * len(texts), [text for text in texts[::4] if not is_pattern(text)]),
    }
    frame = pl.DataFrame({name: list(map(str, values)) for name, values in cells.items()})
    frame.write_ndjson("a.jsonl")
    arrow = frame.to_arrow()
    arrow = arrow.replace_schema_metadata({f"k{place}": text for place, text in enumerate(texts)})
    import pyarrow.feather
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow, "a.parquet")
    pyarrow.feather.write_feather(arrow, "a.arrow")
    for name in ("a.jsonl", "a.parquet", "a.arrow"):
        out = OUT / Path(name).suffix[1:]
        kpca("novelty", "screen", name, "--id", "id", *FLAGS, "--out", out)
    result = screen_table("a.parquet", id="id", count=40)
    # Check the notebook's HTML behind a header that stops browsers from guessing its type.
    page = f"<!DOCTYPE html><meta charset=utf-8>{result._repr_html_()}"
    (OUT / "notebook.html").write_text(page, "utf-8")
    (OUT / "printed-repr.txt").write_text(f"{result!r}\n{find_rules('a.arrow')!r}\n", "utf-8")


def databases() -> None:
    """Put hostile texts into a database: its cells, and names of tables and columns."""
    texts = [text for text in TEXTS if "\0" not in text and len(text) < 2000]
    cells: dict[str, list[Any]] = {"key": [*range(60)], **columns(60, texts[::4])}
    cells |= {"a": texts[:60], "b": texts[-60:]}
    cells = {name: cells[name] for name in {name.casefold(): name for name in cells}.values()}

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    with contextlib.closing(sqlite3.connect("shop.db")) as shop, shop:
        for name in {text.casefold(): text for text in texts}.values():
            if not name.startswith("sqlite_"):
                shop.execute(f"CREATE TABLE {quoted(name)} (a, b REAL)")
                shop.executemany(f"INSERT INTO {quoted(name)} VALUES (?, ?)",
                                 [(k, k % 7 / 3) for k in range(20)])  # fmt: skip
        head = ", ".join(f"{quoted(name)} {'INTEGER PRIMARY KEY' if name == 'key' else ''}"
                         for name in cells)  # fmt: skip
        shop.execute(f"CREATE TABLE birds ({head})")
        marks = ", ".join("?" * len(cells))
        shop.executemany(f"INSERT INTO birds VALUES ({marks})", zip(*cells.values(), strict=True))
    uri = "sqlite:///shop.db"
    kpca("novelty", "screen", uri, code=None)  # lists the names of the tables
    kpca("novelty", "screen", uri, "--table", "birds", *FLAGS, "--out", OUT / "screened")
    for place, text in enumerate(texts[::4]):
        kpca("novelty", "screen", uri, f"--table={text}", "--dry-run", code=None)
        kpca("novelty", "screen", uri, f"--query={text}", "--dry-run", code=None)
        kpca("novelty", "screen", uri, f"--query=SELECT {quoted(text + '?')} FROM birds",
             "--dry-run", code=None)  # fmt: skip
        if place % 12 == 0:
            kpca("novelty", "screen", uri, "--table", "birds", f"--write-to=scores {text}",
                 "--out", OUT / f"{place}", code=None)  # fmt: skip


def marks() -> None:
    """Put hostile texts into identifiers and notes of marks, and into lists of accepted rows."""
    write_csv("cells.csv", cells_of(TEXTS))
    words = ("--id", "id", "--count", len(TEXTS))
    kpca("novelty", "screen", "cells.csv", *words, "--out", "first")
    page = Path("first/report.html").read_text("utf-8")
    rows = json.loads(re.search(r'id="rows">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    keys = [rows["keys"] + (key or "") for key in rows["rows"]["key"]]
    given = [
        {"key": key, "mark": ("fine", "known", "wrong")[place % 3], "row": row,
         "id": TEXTS[place % len(TEXTS)][:300], "note": TEXTS[-place % len(TEXTS)][:2000]}
        for place, (key, row) in enumerate(zip(keys, rows["rows"]["row"], strict=True))
    ]  # fmt: skip
    empty = re.search(r'<script type="application/json" id="marks">(.*?)</script>', page)
    block = json.loads(empty[1]) | {"marks": given}  # type: ignore[index]
    text = json.dumps(block, ensure_ascii=False).replace("<", "\\u003c")
    Path("marked.html").write_text(page.replace(empty[1], text), "utf-8")  # type: ignore[index]
    kpca("novelty", "screen", "cells.csv", *words, "--marks", "marked.html", "--out", OUT / "again")
    # The rows come from another table, so no mark matches a row.
    write_csv("others.csv", cells_of([f"{text}." for text in TEXTS]))
    kpca("novelty", "screen", "others.csv", *words, "--marks", "marked.html", "--out", OUT / "none",
         code=None)  # fmt: skip
    listed = {"row_key": keys, "row": [entry["row"] for entry in given],
              "mark": ["fine"] * len(keys), "note": [row["note"] for row in given]}  # fmt: skip
    write_csv("accept.csv", listed)
    accepted = ("--accept", "accept.csv", "--out", OUT / "listed")
    kpca("novelty", "screen", "cells.csv", *words, *accepted, code=None)
    write_csv("fine.csv", {"id": [*TEXTS], **{text: [*TEXTS] for text in TEXTS[::9]}})
    kpca("novelty", "screen", "cells.csv", *words, "--accept", "fine.csv", "--out", OUT / "fine",
         code=None)  # fmt: skip
    for text in TEXTS[::4]:
        Path("bad.html").write_text(page.replace(empty[1], text.replace("</script>", "")), "utf-8")  # type: ignore[index]
        kpca("novelty", "screen", "cells.csv", "--marks", "bad.html", code=3)


def rule_files() -> None:
    """Put hostile texts into a rule file, as its column names, values, forms and sentences."""
    names = [text for text in TEXTS if len(text) < 400 and not is_pattern(text)]
    cells = columns(30, names)
    write_csv("names.csv", {name: cells[name] for name in names})
    from kpca_apps.novelty.relations.rule import (
        Code,
        EmptyUnless,
        Equal,
        HeldRule,
        HeldRules,
        RuleColumn,
        Unique,
    )
    from kpca_apps.novelty.relations.rule_file import save_rules

    rules: list[Any] = []
    for place, (first, second) in enumerate(zip(names, [*names[1:], names[0]], strict=True)):
        both = (first, second)
        kinds = (
            Equal(columns=both),
            Code(columns=(first,), form=second),
            Unique(columns=both),
            EmptyUnless(columns=both, values=both),
        )
        rules.append(kinds[place % 4])
    held = tuple(HeldRule(rule, 30, 0, ()) for rule in rules)
    made = tuple(RuleColumn(name) for name in names)
    save_rules(HeldRules(TEXTS[0], 30, made, held), "rules.json")
    for word in ((), ("--json",), ("--dry-run",)):
        kpca("novelty", "rules", "names.csv", "--rules", "rules.json", *word, code=None)
    for kind in ("json", "sql", "py", "yaml", "txt"):
        written = ("--rules", "rules.json", "--out", OUT / f"rules.{kind}")
        kpca("novelty", "rules", "names.csv", *written, code=None)
    text = Path("rules.json").read_text("utf-8")
    for item in TEXTS[::4]:
        for part in ('"equal"', '"format"', '"columns"'):
            Path("bad.json").write_text(text.replace(part, json.dumps(item), 1), "utf-8")
            kpca("novelty", "rules", "names.csv", "--rules", "bad.json", code=None)


def models() -> None:
    """Put hostile texts into a model: its table's name, notes and versions."""
    frame_of(60, odd=3).write_csv("birds.csv")
    kpca("novelty", "fit", "birds.csv", "--model", "m.kpca")
    model = load_model("m.kpca")
    versions = {text: text for text in TEXTS}
    for place, text in enumerate(TEXTS[:76]):
        source = replace(model.source, name=text, notes=(text,))
        changed = replace(model, source=source, warnings=(text, *TEXTS), versions=versions)
        if place % 25 == 0:
            save_model(changed, "m.kpca")
            kpca("novelty", "score", "m.kpca", "birds.csv", "--out", OUT / f"{place}")
    kpca("novelty", "explain", "m.kpca", "birds.csv", "--row", 3, "--json")
    kpca("novelty", "explain", "m.kpca", "birds.csv", "--row", 3)


def configs() -> None:
    """Put hostile texts into keys and values of a config file."""
    frame_of(60, odd=3).write_csv("birds.csv")
    for text in TEXTS[::2]:
        key, value = json.dumps(text), json.dumps(text)
        for line in (f"{key} = 1", f"hide = [{value}]", f"share = {value}", f"id = {value}",
                     f"kernel = {value}", f"quiet = {value}", text):  # fmt: skip
            Path("c.toml").write_text(line, "utf-8")
            kpca("novelty", "screen", "birds.csv", "--config", "c.toml", "--dry-run", code=None)


def noisy(*shape: int) -> np.ndarray:
    draw = np.random.default_rng(1)
    return np.clip(120 + draw.normal(0, 20, shape or (12, 12)), 0, 255).astype(np.uint8)


RUN = ("--quality", "draft", "--jobs", 1)


def image_files() -> None:
    """Put hostile texts into file names of images, and into a table of settings for each image."""
    Path("in").mkdir()
    names = file_names(suffix=".png")
    for name in names:
        Image.fromarray(noisy()).save(os.fsencode(f"in/{name}").decode("utf-8", "surrogateescape"))
    Path("in/bad\u202e<b>.png").write_bytes(b"<script>")
    kpca("denoise", "run", "in", *RUN, "--out", OUT / "all", code=5)
    kpca("denoise", "run", "in", "--dry-run")
    kpca("denoise", "run", "in", "--dry-run", "--json")
    kpca("denoise", "noise", "in", code=5)
    some = [f"in/{name}" for name in names if "\udcff" not in name][::10]
    kpca("denoise", "noise", *some, "--json")
    own = {"file": [Path(name).name for name in some], "strength": [0.5] * len(some)}
    write_csv("own.csv", own | {"note": [*TEXTS[: len(some)]]})
    kpca("denoise", "run", *some, *RUN, "--per-image", "own.csv", "--out", OUT / "own", code=None)
    for name in names[::4]:
        kpca("denoise", "run", f"./{name}", code=3)
    Path("in/bad\u202e<b>.png").unlink()
    for word in ((), ("--json",)):
        kpca("denoise", "fit", "in", "--model", f"d{len(word)}.kpca", "--components", 2,
             "--bandwidth", 4, "--sigma", 9, "--dry-run", *word, code=None)  # fmt: skip
    out = OUT / "preview"
    kpca("denoise", "run", f"in/{names[3]}", *RUN, "--preview", "--out", out, code=None)


def workbooks() -> None:
    """Put hostile texts into a workbook: cells, comments, sheets, names and properties."""
    texts = [text for text in TEXTS if len(text) < 1000]
    cells = cells_of(texts)
    metadata.write_workbook(Path("a.xlsx"), {**cells, **columns(6 * len(texts), texts)}, TEXTS)
    kpca("novelty", "screen", "a.xlsx", "--id", "id", *FLAGS, "--out", OUT / "screened")
    same = ("--format", "same", "--out", OUT / "same")
    kpca("novelty", "score", OUT / "screened/model.kpca", "a.xlsx", *same)
    for text in (*[metadata.in_xml(text) for text in TEXTS][::40], "none"):
        kpca("novelty", "screen", "a.xlsx", f"--sheet={text}", "--dry-run", code=None)


def image_metadata() -> None:
    """Put hostile texts into the metadata of images, then denoise the images and measure noise."""
    Path("in").mkdir()
    for place, text in enumerate(TEXTS):
        for kind in islice(cycle(metadata.KINDS), place, place + 2):
            metadata.KINDS[kind](Path(f"in/{place}.{kind}"), noisy(), text)
    kpca("denoise", "run", "in", *RUN, "--out", OUT / "all", code=5)
    # Only files in OUT are checked. Denoised images keep their hostile metadata, so move them.
    (OUT / "all/images").rename("images")
    kpca("denoise", "run", "in", "--dry-run", "--json", code=None)
    kpca("denoise", "noise", "in", code=None)
    for text in TEXTS[::3]:
        metadata.dicom(Path("a.dcm"), noisy(), text, meaning=text)
        metadata.zarr(Path("a.zarr"), noisy(), text, place=text)
        metadata.zarr(Path("b.zarr"), noisy(), text, copy=text)
        for name in ("a.dcm", "a.zarr", "b.zarr"):
            kpca("denoise", "noise", name, code=None)


def compared_runs() -> None:
    """Put hostile texts into names, cells and results of screenings; compare the screenings."""
    names = [text for text in TEXTS if text.strip()]
    texts = TEXTS[::2]
    cells = cells_of(texts) | columns(6 * len(texts), names[::12])
    Path("runs").mkdir()
    words, runs = ("--id", "id", "--count", len(texts)), list[Path]()
    for place, folder in enumerate(file_names(names[:3])):
        write_csv(f"{place}.csv", cells)
        runs.append(Path("runs", folder))
        kpca("novelty", "screen", f"{place}.csv", *words, "--out", runs[-1])
        del cells[names[12 * place]]
        cells["id"] = [*cells["id"][1:], cells["id"][0]]
        cells["word 1"] = [*cells["word 1"][5:], *cells["word 1"][:5]]
        cells["number 1"] = [
            value if isinstance(value, str) else value + 9 for value in cells["number 1"]
        ]
    for number, pair in enumerate(pairwise(runs)):
        kpca("novelty", "diff", *pair, "--out", OUT / f"{number} runs")
        kpca("novelty", "diff", *pair, "--json", "--out", OUT / f"{number} json")
    # Replace every string of a result file, as a file from a stranger may hold any text.
    result, others = runs[1] / "result.json", cycle(TEXTS)
    content = json.loads(result.read_text("utf-8"))

    def changed(value: Any, *kept: str) -> Any:
        if isinstance(value, dict):
            return {key: value[key] if key in kept else changed(value[key], *kept) for key in value}
        if isinstance(value, list):
            return [changed(item, *kept) for item in value]
        return next(others) if isinstance(value, str) else value

    for kept in ((), ("kind", "role", "format", "name"), ("kind", "columns"), ("kind", "source")):
        result.write_text(json.dumps(changed(content, *kept)), "utf-8")
        out = OUT / f"{len(kept)} {'-'.join(kept)}"
        kpca("novelty", "diff", *runs[:2], "--out", out, code=None)


def words_of_calls() -> None:
    """Put hostile texts on the command line, as values of options and as arguments."""
    frame_of(60, odd=3).write_csv("birds.csv")
    calls = (
        "novelty screen birds.csv --hide", "novelty screen birds.csv --encoding",
        "novelty screen birds.csv --delimiter", "novelty screen birds.csv --method",
        "novelty screen birds.csv --share", "novelty screen birds.csv --as-of",
        "novelty rules birds.csv --rules", "denoise run birds.csv --region",
        "denoise run birds.csv --sigma", "denoise run birds.csv --noise", "papers run usps --data",
    )  # fmt: skip
    for text in TEXTS[::3]:
        for call in calls:
            kpca(*call.split()[:-1], f"{call.split()[-1]}={text}", code=None)
        for call in (
            "papers run",
            "schema",
            "novelty",
            "novelty explain birds.csv birds.csv --row=1",
        ):
            kpca(*call.split(), *(() if "=" in call else ("--", text)), code=None)


PLACES: dict[str, Callable[[], None]] = {
    place.__name__.replace("_", " "): place
    for place in (
        column_names, cells, groups, other_files, databases, marks,
        rule_files, models, configs, image_files, workbooks, image_metadata, compared_runs,
        words_of_calls,
    )
}  # fmt: skip


@contextlib.contextmanager
def visited(place: str, folder: Path) -> Iterator[Path]:
    """Run the function of one place of `PLACES` in a new folder; yield the output folder."""
    before = Path.cwd()
    folder.mkdir(parents=True)
    os.chdir(folder)
    try:
        PLACES[place]()
        yield folder / OUT
    finally:
        os.chdir(before)


def reached(folder: Path, texts: Iterable[str] = TEXTS) -> int:
    """Count the texts, escaped or not, that occur in the output."""
    flat = re.sub(r"\s+", "", texts_in(folder))

    def forms(text: str) -> Iterator[str]:
        for form in (text, visible(text), json.dumps(text)[1:-1], json.dumps(visible(text))[1:-1]):
            yield re.sub(r"\s+", "", form)[:18]

    return sum(any(form and form in flat for form in forms(text)) for text in texts)


def run_all(names: Sequence[str], keep: Path | None = None) -> int:
    """Run the functions of `PLACES` in `names`; print the faults found and return their number."""
    n_faults = 0
    with tempfile.TemporaryDirectory() as made:
        top = keep or Path(made)
        for name in names:
            with visited(name, top / name.replace(" ", "-")) as out:
                counts, faults = count_of(out), [*faults_of(out)]
                n_calls = counts.pop(".txt")
                kinds = ", ".join(f"{n} {kind}" for kind, n in counts.items())
                n_seen = reached(out)
            sys.stdout.write(
                f"{name}: {n_seen} of {len(TEXTS)} texts seen; {n_calls} calls, {kinds}\n"
            )
            for fault in faults:
                sys.stdout.write(f"  {fault}\n")
            sys.stdout.flush()
            n_faults += len(faults)
    sys.stdout.write(f"{len(TEXTS)} texts, {len(names)} places, {n_faults} faults\n")
    return n_faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", default=[*PLACES], help=", ".join(PLACES))
    parser.add_argument("--keep", type=Path, help="new folder that keeps what is written")
    options = parser.parse_args()
    sys.exit(run_all(options.places, options.keep) > 0)
