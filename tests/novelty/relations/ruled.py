"""A table whose rows break every kind of rule, and the rules."""

import math
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding.discovery import columns_of
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    HeldRules,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.tables.frames import table_from_frame

ODD = "we\"ird `na\\me' -- {{x}}"
DAY = 86400.0
RULES: tuple[AnyRule, ...] = (
    Equal(columns=("start", "end"), tolerance=DAY),
    Equal(columns=("net", "tax")),
    Equal(columns=("code", "other")),
    Order(columns=("start", "end")),
    Order(columns=("net", "tax"), strict=True),
    Order(columns=("open", "close")),
    Linear(columns=("total", "net", "tax"), coefficients=(1.0, 1.0), tolerance=1e-9),
    Linear(columns=("days", "end", "start"), coefficients=(1 / DAY, -1 / DAY), tolerance=1e-6),
    Linear(columns=("end", "start", "days"), coefficients=(1.0, DAY), tolerance=1.0),
    Linear(columns=("total", "net"), coefficients=(-0.5,), offset=12.25, tolerance=3.0),
    Product(columns=("area", "net", "tax"), exponents=(1.0, 1.0), relative=1e-9),
    Product(columns=("net", "area", "tax"), exponents=(1.0, -1.0), relative=1e-9),
    Product(columns=("area", "net"), exponents=(0.5,), factor=2.0, tolerance=4.0, relative=0.1),
    Product(columns=("area", "net", "tax"), exponents=(1.0, 1.0), per=-0.01, tolerance=40.0),
    Product(columns=("net", "area", "tax"), exponents=(-1.0, 1.0), per=1.0, relative=0.5),
    Sorted(columns=("number",)),
    Sorted(columns=("number",), falling=True),
    Unique(columns=("number",)),
    Unique(columns=("start",)),
    Unique(columns=("zip", ODD)),
    Determines(columns=("zip", "city")),
    Determines(columns=("zip", ODD, "sex")),
    Determines(columns=("sex", "code")),
    EmptyUnless(columns=(ODD, "sex"), values=("F",)),
    EmptyUnless(columns=("sex", ODD)),
    EmptyUnless(columns=("sex", ODD), values=("1", "2")),
    EmptyUnless(columns=("net", "sex"), values=("F",)),
    EmptyUnless(columns=("city", "net"), values=("1.25", "0", "3")),
    EmptyUnless(columns=("city", "net")),
    EmptyUnless(columns=("sex", "net"), values=("1e-07",)),
    PositiveOnlyIf(columns=(ODD, "sex"), values=("F",)),
    PositiveOnlyIf(columns=("net", "sex"), values=("F",)),
    PositiveOnlyIf(columns=(ODD, "sex", "city"), values=("F", "city 1")),
    PositiveOnlyIf(columns=(ODD, "sex", "city"), values=("F", "city 1"), both=True),
    Code(columns=("code",), form="AA-99"),
    Code(columns=("code",), form="A.[]^%_-9"),
    Code(columns=("city",), form="AAAA 9"),
    Code(columns=("number",), form="999"),
    Within(columns=("net",), low=1.0, high=20.0),
    Within(columns=("start",), low=1.58e9),
    Equal(columns=("zip", "code")),
)


def ruled_frame(n: int = 200, seed: int = 0) -> pl.DataFrame:
    """Return rows that break each rule now and then, with missing cells in all columns."""
    rng = np.random.default_rng(seed)
    start = [date(2020, 1, 1) + timedelta(int(k)) for k in rng.integers(0, 1000, n)]
    end = [day + timedelta(int(k)) for day, k in zip(start, rng.integers(-2, 30, n), strict=True)]
    net, tax = rng.integers(0, 100, n) / 4, rng.integers(0, 100, n) / 4
    wrong = rng.random((4, n)) < 0.05
    codes = ["AB-12", "XY-3", "é9-12", "A.[]^%_-9", "n/a", "  ", "None", " AB-12 "]
    zips = rng.integers(35000, 35010, n)
    columns = {
        "start": start,
        "end": end,
        "days": [(b - a).days + bool(w) for a, b, w in zip(start, end, wrong[0], strict=True)],
        "net": net,
        "tax": tax,
        "total": net + tax + wrong[1],
        "area": net * tax + wrong[2],
        "number": np.arange(n) + 10 * wrong[3],
        "zip": zips.astype(str),
        "city": [f"city {k % 4}" if rng.random() < 0.8 else "elsewhere" for k in zips],
        "sex": rng.choice(["F", "M"], n),
        "code": rng.choice(codes, n),
        "other": rng.choice(codes, n),
        ODD: rng.integers(0, 5, n),
        "open": [time(int(k) // 4, int(k) % 4 * 15) for k in rng.integers(0, 60, n)],
        "close": [time(int(k) // 4, int(k) % 4 * 15) for k in rng.integers(30, 96, n)],
    }
    frame = pl.DataFrame(columns)
    gaps = [pl.Series(rng.random(n) < 0.05) for _ in columns]
    return frame.with_columns(
        pl.when(~gap).then(pl.col(name)).alias(name)
        for name, gap in zip(columns, gaps, strict=True)
    )


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the cells as text, some of the numbers and dates unreadable."""
    rng = np.random.default_rng(1)
    texts = frame.select(pl.all().cast(pl.String))
    bad = pl.Series(rng.random(frame.height) < 0.05)
    names = ("net", "zip", "start")
    return texts.with_columns(
        pl.when(bad).then(pl.lit("oops")).otherwise(pl.col(name)).alias(name) for name in names
    )


# Spellings of cells in text files, and special floats of typed columns.
TEXT_CELLS: dict[str, Callable[[str], str | None]] = {
    "as it is": lambda cell: cell,
    "null": lambda cell: None,
    "empty": lambda cell: "",
    "spaces only": lambda cell: " \t\u00a0",
    "NaN": lambda cell: "NaN",
    "word for missing": lambda cell: "\tN/A\n",
    "infinity": lambda cell: "inf",
    "minus infinity": lambda cell: "-Infinity",
    "beyond 1e100": lambda cell: "-1e101",
    "beyond floats": lambda cell: "1e999",
    "tab": lambda cell: f"\t{cell}\t",
    "line break before": lambda cell: f"\r\n{cell}",
    "line break behind": lambda cell: f"{cell}\n",
    "spaces": lambda cell: f"  {cell} ",
    "spaces of Unicode": lambda cell: f"\u00a0\u2003{cell}\x85\v",
    "underscore": lambda cell: f"{cell[:1]}_{cell[1:]}",
    "plus": lambda cell: f"+{cell}",
    "minus": lambda cell: f"-{cell}",
    "dash": lambda cell: f"\u2212{cell}",
    "two signs": lambda cell: f"+-{cell}",
    "brackets": lambda cell: f"({cell}.25)",
    "percent": lambda cell: f"{cell} %",
    "currency": lambda cell: f"-\u20ac {cell}",
    "currency behind": lambda cell: f"{cell}USD",
    "separated": lambda cell: f"1,{cell.zfill(3)[:3]}.5",
    "exponent": lambda cell: f"{cell}e+1",
    "hexadecimal": lambda cell: "0x1F",
    "of Java": lambda cell: f"{cell}d",
    "true": lambda cell: "true",
    "digits of Arabic": lambda cell: "\u0663",
}
FLOAT_CELLS: dict[str, Callable[[float], float | None]] = {
    "as it is": lambda cell: cell,
    "null": lambda cell: None,
    "NaN": lambda cell: math.nan,
    "infinity": lambda cell: math.inf,
    "minus infinity": lambda cell: -math.inf,
    "beyond 1e100": lambda cell: -1e101,
    "minus zero": lambda cell: -0.0,
    "minus": lambda cell: -cell,
}


def with_cells(frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield a frame for each kind of cell, with that kind in a tenth of all cells."""
    is_typed = frame.schema["start"] != pl.String
    for kind in FLOAT_CELLS if is_typed else TEXT_CELLS:
        yield kind, mixed_cells(frame, kind, share=0.1)


def mixed_cells(frame: pl.DataFrame, *kinds: str, share: float = 0.5) -> pl.DataFrame:
    """Return a frame with a share of its cells spelt at random in the given ways (default: all)."""
    rng, columns = np.random.default_rng(2), []
    is_typed = frame.schema["start"] != pl.String
    for column in frame.iter_columns():
        writers: dict[str, Callable[[Any], Any]] = FLOAT_CELLS if is_typed else TEXT_CELLS
        if is_typed and not column.dtype.is_float():
            writers = dict.fromkeys(writers, lambda cell: cell) | {"null": lambda cell: None}
        drawn = rng.choice(kinds or [*writers], frame.height)
        is_other = (rng.random(frame.height) < share) & column.is_not_null().to_numpy()
        cells = [
            writers[kind](cell) if other else cell
            for cell, kind, other in zip(column, drawn, is_other, strict=True)
        ]
        columns.append(pl.Series(column.name, cells, dtype=column.dtype))
    return pl.DataFrame(columns)


def cells_of(frame: pl.DataFrame, like: pl.DataFrame | None = None) -> Cells:
    """Return the cells of a frame, read with the formats of `like`."""
    table = table_from_frame(frame if like is None else like, "ruled")
    cells = Cells.of(table, infer_plan(table, for_model=False))
    return cells if like is None else Cells(table_from_frame(frame, "ruled"), cells.formats)


def held(
    frame: pl.DataFrame, rules: tuple[AnyRule, ...] = RULES, like: pl.DataFrame | None = None
) -> HeldRules:
    """Return rules with the rows that break them according to `check`."""
    cells = cells_of(frame, like)
    rules_held = tuple(check(rule, cells).summary(rule) for rule in rules)
    return HeldRules("ruled", frame.height, columns_of(rules_held, cells), rules_held)
