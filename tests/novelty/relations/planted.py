"""A table with one rule of each kind, and a copy with some cells changed."""

from collections.abc import Iterable
from datetime import date, timedelta

import numpy as np
import polars as pl

from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    Linear,
    Order,
    Product,
    Sorted,
    Unique,
    Within,
)

DAY = 86400.0


def planted(n: int = 600, seed: int = 0) -> pl.DataFrame:
    """Return hospital stays: dates, sums, units, products, keys, conditions, codes."""
    rng = np.random.default_rng(seed)
    start = [date(2019, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 1500, n)]
    days = rng.poisson(6, n)
    height, weight = rng.normal(172, 9, n).round(), rng.normal(75, 12, n).round(1)
    systolic = rng.normal(125, 15, n).round()
    net, rate = rng.lognormal(5, 1, n).round(2), rng.choice([0.07, 0.19], n)
    tax = (net * rate).round(2)
    opening, inward, outward = (rng.normal(500, 90, n).round(2) for _ in range(3))
    wood, clay = rng.uniform(0, 60, n).round(1), rng.uniform(0, 40, n).round(1)
    celsius = rng.normal(37, 2, n).round(1)
    sex, status = rng.choice(["f", "m"], n), rng.choice(["well", "ill", "dead"], n)
    cause, ward = rng.choice(["A", "B", "C"], n), rng.integers(0, 40, n)
    letters = rng.choice(list("ABCDEF"), (n, 2))
    number = rng.permutation(max(n, 9000))[:n] + 1000
    return pl.DataFrame(
        {
            "case": np.arange(n) + 7,
            "start": start,
            "end": [day + timedelta(int(more)) for day, more in zip(start, days, strict=True)],
            "days": days,
            "height": height,
            "weight": weight,
            "bmi": (weight / (height / 100) ** 2).round(1),
            "systolic": systolic,
            "diastolic": (0.55 * systolic + rng.normal(12, 7, n)).round(),
            "net": net,
            "rate": rate,
            "tax": tax,
            "gross": (net + tax).round(2),
            "opening": opening,
            "inward": inward,
            "outward": outward,
            "closing": (opening + inward - outward).round(2),
            "wood": wood,
            "clay": clay,
            "rest": (100 - wood - clay).round(1),
            "celsius": celsius,
            "fahrenheit": (celsius * 1.8 + 32).round(1),
            "sex": sex,
            "status": status,
            "cause": [of if to == "dead" else None for of, to in zip(cause, status, strict=True)],
            "ward": [f"W{k}" for k in ward],
            "house": [f"House {k // 4}" for k in ward],
            "town": [f"Town {k // 12}" for k in ward],
            "town again": [f"Town {k // 12}" for k in ward],
            "code": ["".join(pair) + f"-{k}" for pair, k in zip(letters, number, strict=True)],
            "passed": np.minimum(rng.normal(88, 12, n).round(), 100),
        }
    )


# Expected rules, without their tolerances.
RULES: tuple[AnyRule, ...] = (
    Equal(columns=("town", "town again")),
    Order(columns=("start", "end")),
    Order(columns=("diastolic", "systolic")),
    Linear(columns=("days", "end", "start"), coefficients=(1 / DAY, -1 / DAY)),
    Linear(columns=("gross", "net", "tax"), coefficients=(1.0, 1.0)),
    Linear(columns=("closing", "opening", "inward", "outward"), coefficients=(1.0, 1.0, -1.0)),
    Linear(columns=("rest", "wood", "clay"), coefficients=(-1.0, -1.0), offset=100.0),
    Linear(columns=("fahrenheit", "celsius"), coefficients=(1.8,), offset=32.0),
    Product(columns=("tax", "net", "rate"), exponents=(1.0, 1.0)),
    Product(columns=("bmi", "height", "weight"), exponents=(-2.0, 1.0), factor=10_000.0),
    Determines(columns=("ward", "house")),
    Determines(columns=("house", "town")),
    EmptyUnless(columns=("cause", "status"), values=("dead",)),
    Unique(columns=("case",)),
    Unique(columns=("code",)),
    Sorted(columns=("case",)),
    Code(columns=("code",), form="AA-9999"),
    Within(columns=("passed",), low=0.0, high=100.0),
)

# By column: how to change a cell, and the rules that its row then breaks.
FAULTS = {
    "end": (lambda day: day - timedelta(400), {"start end", "days end start"}),
    "days": (lambda days: days + 3, {"days end start"}),
    "weight": (lambda kilos: kilos + 9, {"bmi height weight"}),
    "systolic": (lambda pressure: pressure - 100, {"diastolic systolic"}),
    "gross": (lambda sum: sum * 10, {"gross net tax"}),
    "closing": (lambda sum: sum + 1, {"closing opening inward outward"}),
    "clay": (lambda share: share + 5, {"rest wood clay"}),
    "fahrenheit": (lambda degrees: degrees + 1, {"fahrenheit celsius"}),
    "rate": (lambda rate: 0.26 - rate, {"tax net rate"}),
    "code": (lambda code: code[:3] + code[4:], {"code"}),
    "passed": (lambda _: 105.0, {"passed"}),
    "town again": (lambda _: "Town 9", {"town town again"}),
    "house": (lambda house: house + "x", {"ward house"}),
}


def with_faults(
    frame: pl.DataFrame, n_each: int, seed: int = 1
) -> tuple[pl.DataFrame, dict[str, set[int]]]:
    """Change cells in each column of `FAULTS`; return the changed rows (from 1) by rule."""
    rows = iter(np.random.default_rng(seed).permutation(frame.height).tolist())
    broken: dict[str, set[int]] = {}
    for name, (change, rules) in FAULTS.items():
        cells = frame[name].to_list()
        for row in [next(rows) for _ in range(n_each)]:
            cells[row] = change(cells[row])
            for rule in rules:
                broken.setdefault(rule, set()).add(row + 1)
        frame = frame.with_columns(pl.Series(name, cells))
    return frame, broken


def shuffled(frame: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Shuffle the cells of each column independently."""
    rng = np.random.default_rng(seed)
    return frame.select(
        [frame[name].gather(rng.permutation(frame.height)) for name in frame.columns]
    )


def signatures(rules: Iterable[AnyRule]) -> set[tuple[str, frozenset[str]]]:
    """Return kinds and columns of rules."""
    return {(type(rule).__name__, frozenset(rule.columns)) for rule in rules}
