"""A hidden column's values appear nowhere, however the header spells its name.

Each form of header is written as each kind of table that supports it, and given to the command, to
Python and to the server for assistants; all that they write, print, return and show in a notebook
is searched. A sample of the cases runs by default, all of them as `release`.
"""

import csv
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from kpca_apps import find_rules, load_model, save_model, screen_table
from kpca_apps.cli.server.roots import Roots
from kpca_apps.cli.server.tools import Tools
from tests.cli.conftest import Run
from tests.cli.test_hidden import texts
from tests.quick import quick

N_ROWS = 48
SECRET = re.compile(r"QZ[a-z]|(?<![\w.])77[,']?77\d")
Nest = Callable[[object], object]


@dataclass(frozen=True)
class Shape:
    """How a header spells the names of secret columns, and the name given to --hide."""

    headers: tuple[str, ...]
    hide: str
    nest: Nest | None = None  # wraps a cell in a record
    seen: str = "size"  # the name of the visible column

    @property
    def is_unique(self) -> bool:
        return len({*self.headers}) == len(self.headers)


def of(*headers: str, hide: str = "secret", nest: Nest | None = None) -> Shape:
    return Shape(headers, hide, nest)


SHAPES = {
    "plain": of("secret"),
    "twice": of("secret", "secret"),
    "three times": of("secret", "secret", "secret"),
    "twice, the suffix taken": Shape(("secret", "secret"), "secret", seen="secret_2"),
    "twice, hidden in capitals": of("secret", "secret", hide="SECRET"),
    "in two cases": of("secret", "Secret"),
    "with and without a blank": of("secret", " secret "),
    "in capitals": of("SECRET"),
    "hidden in capitals": of("secret", hide="Secret"),
    "sharp s": of("stra\u00dfe", hide="STRASSE"),
    "composed": of("cl\u00e9", hide="cle\u0301"),
    "decomposed": of("cle\u0301", hide="cl\u00e9"),
    "blanks around": of("  secret "),
    "a blank inside": of("se cret"),
    "blanks hidden": of("secret", hide=" sec ret"),
    "a hard blank": of("sec\u00a0ret"),
    "a zero-width space": of("sec\u200bret"),
    "a soft hyphen": of("sec\u00adret"),
    "a byte-order mark": of("sec\ufeffret"),
    "a variation selector": of("secret\ufe0f"),
    "a combining joiner": of("sec\u034fret"),
    "a Hangul filler": of("sec\u3164ret"),
    "a direction mark": of("\u202esecret"),
    "a tag": of("secret\U000e0041"),
    "a tab": of("sec\tret"),
    "a line break": of("sec\nret"),
    "a control": of("sec\x7fret"),
    "double quotes": of('"secret"'),
    "single quotes": of("'secret'"),
    "quotes of a printer": of("\u201csecret\u201d"),
    "quotes hidden": of("secret", hide='"secret"'),
    "a colon": of("secret:"),
    "a colon hidden": of("secret", hide="secret:"),
    "quotes and a colon": of('"secret" :'),
    "a pattern": of("^secret$", hide="^secret$"),
    "a field": of("record", nest=lambda cell: {"n": 1, "secret": cell}),
    "a field by its path": of("Record", hide="record.secret", nest=lambda c: {"secret": c}),
    "a field deep down": of("record", nest=lambda cell: {"a": [{"b": {"Secret ": cell}}]}),
    "a field in a list": of("record", hide="record.a.secret", nest=lambda c: [{"secret": c}]),
}
FILES = ("csv", "several", "xlsx", "json", "jsonl", "parquet", "arrow")
DATABASES = ("sqlite", "duckdb")
FRAMES = ("polars", "pandas", "pyarrow")
NO_REPEAT = ("json", "jsonl", "parquet", "polars")  # tables where column names cannot repeat
CASES = [
    (shape, kind)
    for shape in SHAPES
    for kind in (*FILES, *DATABASES, *FRAMES)
    if (SHAPES[shape].is_unique or kind not in NO_REPEAT)
    # Parquet files are refused if polars would take a column name as a pattern (`^...$`).
    and not (shape == "a pattern" and kind == "parquet")
]
QUICK = [
    ("twice", "csv"),
    ("twice", "pandas"),
    ("decomposed", "sqlite"),
    ("a field deep down", "json"),
]


def columns_of(shape: Shape) -> tuple[list[str], list[list[object]]]:
    """Return two visible columns and the secret ones (names, cells); the last row is an outlier."""
    rng = np.random.default_rng(5)
    size = rng.normal(size=N_ROWS)
    weight = size + 0.05 * rng.normal(size=N_ROWS)
    weight[-1] = -4 * np.sign(size[-1])
    names, cells = [shape.seen, "weight"], [size.round(3).tolist(), weight.round(3).tolist()]
    for number, header in enumerate(shape.headers):
        secret: list[object] = ["QZhigh" if value > 0 else "QZlow" for value in size]
        secret[-2], secret[-1] = "QZodd", "QZlow" if size[-1] > 0 else "QZhigh"
        if number % 2:
            secret = [77_771.5 + round(value, 2) for value in size.tolist()]
            secret[-1] = 77_779.25
        nested = secret if shape.nest is None else list(map(shape.nest, secret))
        names.insert(1 + 2 * number, header)
        cells.insert(1 + 2 * number, nested)
    return names, cells


def written(shape: Shape, kind: str) -> tuple[Any, dict[str, str]]:
    """Write a table or create a frame; return the path or frame, and reading options."""
    names, cells = columns_of(shape)
    if kind in FRAMES:
        return frame(kind, names, cells), {}
    flat = [
        [json.dumps(one, ensure_ascii=False) if isinstance(one, dict | list) else one for one in of]
        for of in cells
    ]
    path = Path(f"table.{kind}")
    if kind == "csv":
        as_csv(path, names, flat)
    elif kind == "several":
        path.mkdir()
        for part, cut in (("a", slice(0, 20)), ("b", slice(20, None))):
            as_csv(path / f"{part}.csv", names, [column[cut] for column in flat])
    elif kind == "xlsx":
        with closing(xlsxwriter.Workbook(path)) as book:
            sheet = book.add_worksheet()
            for place, (name, of_name) in enumerate(zip(names, flat, strict=True)):
                sheet.write_column(0, place, [name, *of_name])
    elif kind in ("json", "jsonl"):
        rows = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
        text = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
        path.write_text(text, encoding="utf-8")
    elif kind == "parquet":
        pq.write_table(frame("pyarrow", names, cells), path)
    elif kind == "arrow":
        table = frame("pyarrow", names, cells)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        return database(path, names, flat)
    return str(path), {}


def as_csv(path: Path, names: list[str], cells: list[list[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *zip(*cells, strict=True)])


def frame(kind: str, names: list[str], cells: list[list[object]]) -> Any:
    if kind == "polars":
        return pl.DataFrame(dict(zip(names, cells, strict=True)))
    if kind == "pandas":
        return pd.concat(
            [pd.Series(column, name=n) for n, column in zip(names, cells, strict=True)], axis=1
        )
    return pa.Table.from_arrays(list(map(pa.array, cells)), names)


def database(path: Path, names: list[str], cells: list[list[object]]) -> tuple[str, dict[str, str]]:
    """Create a database; return its address and a query that renames columns and cites a secret."""
    places = range(len(names))
    kinds = ("TEXT" if isinstance(column[0], str) else "DOUBLE" for column in cells)
    made = ", ".join(f"c{k} {kind}" for k, kind in zip(places, kinds, strict=True))
    connect = sqlite3.connect if path.suffix == ".sqlite" else duckdb.connect
    with closing(connect(str(path))) as connection:  # type: ignore[operator]
        connection.execute(f"CREATE TABLE t ({made})")
        marks = ", ".join("?" for _ in places)
        connection.executemany(f"INSERT INTO t VALUES ({marks})", list(zip(*cells, strict=True)))
        connection.commit()
    quoted = [name.replace('"', '""') for name in names]
    named = ", ".join(f'c{k} AS "{name}"' for k, name in zip(places, quoted, strict=True))
    query = f"SELECT {named} FROM t WHERE c1 <> 'QZnone' ORDER BY c0"
    return f"{path.suffix[1:]}:///{path}", {"query": query}


def by_command(run: Run, table: str, reading: dict[str, str], hide: str) -> dict[str, str]:
    """Screen, score and explain; return the files and the terminal output."""
    how = [word for name, value in reading.items() for word in (f"--{name}", value)]
    options = (*how, f"--hide={hide}")
    terminal = ""
    for words in (
        ("screen", table, "--count", 2, *options, "--json", "--out", "seen"),
        ("score", "seen/model.kpca", table, *how, "--out", "scored"),
        ("explain", "seen/model.kpca", table, *how, "--row", 48),
    ):
        done = run(*words)
        assert done.code == 0, (words, done.err)
        terminal += done.out + done.err
    return texts("seen", "scored") | {"terminal": terminal}


def by_python(table: Any, reading: dict[str, str], hide: str) -> dict[str, str]:
    """Screen and find rules; return what a session, a notebook and files show."""
    result = screen_table(table, count=2, hide=hide, **reading)
    Path("python").mkdir()
    result.save_report("python/report.html")
    result.save_tables("python")
    save_model(result.model, "m.kpca")
    model = load_model("m.kpca")
    rules = find_rules(table, hide=hide, **reading)
    rules.save("python/rules.json")
    shown = {
        "repr": repr(result),
        "notebook": str(result._repr_html_()),
        "fields": str(replace(result, model=None, _table=None, _frame=None).__dict__),
        "notes of the model": str((result.model.warnings, model.warnings)),
        "rules": repr(rules) + str(rules.sentences),
    }
    for name in ("to_frame", "flagged", "odd_cells_frame", "reasons_frame"):
        value = getattr(result, name)()
        is_arrow = isinstance(value, pa.Table)
        cells = [of.to_pylist() for of in value.columns] if is_arrow else value.to_numpy().tolist()
        shown[name] = str(cells)
    return texts("python") | shown


def by_server(table: str, hide: str) -> dict[str, str]:
    """Screen, explain and compare; return the answers and the files."""
    tools = Tools(Roots.of([Path.cwd()], 50_000_000), (hide,))
    answers = [
        tools.screen_table(table, count=2, out="served"),
        tools.explain_row("served", table, row=48),
        tools.diff_runs("seen", "served"),
    ]
    return texts("served") | {"answers": json.dumps(answers, ensure_ascii=False)}


def leaks(outputs: dict[str, str]) -> Iterator[str]:
    """Yield the places that contain a secret, with the text around it."""
    for where, text in outputs.items():
        if match := SECRET.search(text):
            yield f"{where}: {text[max(match.start() - 60, 0) : match.end() + 30]!r}"


# Before a release, only every fifth case runs: all shapes of headers, each with some kinds of
# tables. All cases take 10 minutes.
RUN = CASES if "KPCA_EXAMPLES" in os.environ else dict.fromkeys([*QUICK, *CASES[::5]])


@pytest.mark.parametrize(("name", "kind"), quick(RUN, *QUICK))
def test_no_face_shows_what_is_hidden(kpca: Run, name: str, kind: str) -> None:
    shape = SHAPES[name]
    table, reading = written(shape, kind)
    outputs = by_python(table, reading, shape.hide)
    if kind not in FRAMES:
        outputs |= by_command(kpca, table, reading, shape.hide)
        columns = json.loads(Path("seen/result.json").read_text("utf-8"))["columns"]
        assert sum(column["hidden"] for column in columns) == len(shape.headers)
    if kind in FILES and kind != "several":
        outputs |= by_server(table, shape.hide)
    assert [*leaks(outputs)] == []
