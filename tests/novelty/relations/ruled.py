"""A table that breaks every kind of rule, and the rules it breaks."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.novelty.relations.rules import HeldRules, columns_of
from kpca_apps.tables.frames import table_from_frame

ODD = "we\"ird `na\\me' -- {{x}}"
DAY = 86400.0
RULES: tuple[AnyRule, ...] = (
    Equal(columns=("start", "end"), tolerance=DAY),
    Equal(columns=("net", "tax")),
    Equal(columns=("code", "other")),
    Order(columns=("start", "end")),
    Order(columns=("net", "tax"), strict=True),
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
    PositiveOnlyIf(columns=(ODD, "sex"), values=("F",)),
    Code(columns=("code",), form="AA-99"),
    Code(columns=("code",), form="A.[]^%_-9"),
    Within(columns=("net",), low=1.0, high=20.0),
    Within(columns=("start",), low=1.58e9),
)


def ruled_frame(n: int = 200, seed: int = 0) -> pl.DataFrame:
    """Rows that break each rule here and there, with cells missing in all columns."""
    rng = np.random.default_rng(seed)
    start = [date(2020, 1, 1) + timedelta(int(k)) for k in rng.integers(0, 1000, n)]
    end = [one + timedelta(int(k)) for one, k in zip(start, rng.integers(-2, 30, n), strict=True)]
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
    }
    frame = pl.DataFrame(columns)
    gaps = [pl.Series(rng.random(n) < 0.05) for _ in columns]
    return frame.with_columns(
        pl.when(~gap).then(pl.col(name)).alias(name)
        for name, gap in zip(columns, gaps, strict=True)
    )


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The same cells as a text file has them, some of numbers and dates that cannot be read."""
    rng = np.random.default_rng(1)
    texts = frame.select(pl.all().cast(pl.String))
    bad = pl.Series(rng.random(frame.height) < 0.05)
    names = ("net", "zip", "start")
    return texts.with_columns(
        pl.when(bad).then(pl.lit("oops")).otherwise(pl.col(name)).alias(name) for name in names
    )


def held(frame: pl.DataFrame, rules: tuple[AnyRule, ...] = RULES) -> HeldRules:
    """How rules hold in a frame, by `check`."""
    table = table_from_frame(frame, "ruled")
    cells = Cells.of(table, infer_plan(table, for_model=False))
    found = tuple(check(rule, cells).summary(rule) for rule in rules)
    return HeldRules("ruled", frame.height, columns_of(found, cells), found)
