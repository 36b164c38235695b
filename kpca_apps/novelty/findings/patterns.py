"""Group rows that are odd for the same reason into patterns.

A pattern holds rows whose first reason names the same columns and whose values deviate alike: they
are equal, or a similar multiple of the expected value, or on the same side of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betainc

from kpca_apps.names import MISSING, cut_apart, in_prose, quoted, quoted_cell
from kpca_apps.novelty.result import ColumnProfile, NumericProfile, Pattern, RankedRow, Reason
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table

MIN_ROWS = 3  # minimum number of rows in a pattern: two rows may be odd alike by chance
# Limits for "the same multiple of the expected value": the maximum ratio within a group, the
# minimum ratio between groups, and the minimum multiple stated instead of "above" or "below".
LARGEST_SPREAD, SMALLEST_GAP, SMALLEST_FACTOR = 2.0, 1.5, 2.0
# State a value of another column if MOST of the pattern's rows have it, at most FEW of the other
# rows do, and the probability of this by chance, in any column examined, is below BY_CHANCE.
MOST, FEW, BY_CHANCE = 0.9, 0.25, 0.01
# Clauses about columns with cells that are odd by themselves, by kind.
KINDS = {
    "far above": "is far above the rest of the column",
    "far below": "is far below the rest of the column",
    "date": "is far from all other dates",
    "zero": "is 0, far from all others",
    "sign": "has the wrong sign",
    "placeholder": "holds a code for a missing value",
    "stuck": "stands still",
    "code": "is no valid code",
    "misspelt": "is a common value misspelt",
    "new": "is a value that the reference never has",
    "form": "lacks what nearly all others have",
    "unreadable": "cannot be read",
    "contradicted": "contradicts the rest of the row",
}
PLURALS = {"is": "are", "has": "have", "holds": "hold", "stands": "stand", "lacks": "lack"}
PLURALS |= {"contradicts": "contradict", "cannot": "cannot"}
ABOVE, BELOW = "is above what the rest suggests", "is below what the rest suggests"
CLAUSES = {
    "above": ABOVE,
    "below": BELOW,
    "missing": "is missing",
    "other": "is unlike what the rest suggests",
}


def kinds_of_evidence(evidence: pl.DataFrame, names: Sequence[str]) -> tuple[Pattern, ...]:
    """Group rows by the strongest evidence against their cells, the strongest first.

    Rows of a group break the same rule in the same columns, or are odd in the same columns and of
    the same kind. `names` are all columns in order.
    """
    of_row = defaultdict[int, list[dict[str, Any]]](list)
    for finding in evidence.iter_rows(named=True):
        for row in finding["row"]:
            of_row[row].append(finding)
    kinds = defaultdict[tuple[Any, ...], list[int]](list)
    for row, (first, *others) in of_row.items():
        rule, kind, about = first["rule"], first["kind"], {first["column"]}
        if rule:
            about |= {*first["given"]}
        else:
            about |= {of["column"] for of in others if (of["rule"], of["kind"]) == ("", kind)}
        kinds[rule, kind, tuple(sorted(about, key=names.index))].append(row)
    found = []
    for (rule, kind, about), rows in kinds.items():
        clause = f"{rule} does not hold"
        if not rule:
            clause = _say_of([quoted(name) for name in about], KINDS.get(kind, f"is {kind}"))
        sentence = f"{len(rows):,} row{'s' * (len(rows) > 1)}: {clause}."
        found.append(Pattern(tuple(rows), about, sentence))
    return tuple(found)


def find_patterns(
    ranked: Sequence[RankedRow], columns: Sequence[ColumnProfile], listed: Table, sample: Table
) -> tuple[Pattern, ...]:
    """Find patterns: flagged rows that are odd for the same reason; the largest pattern first.

    `listed` are all ranked rows as written; `sample` shows how common a value is among all rows.
    """
    order = {column.name: number for number, column in enumerate(columns)}
    dates = {
        column.name
        for column in columns
        if isinstance(column.distribution, NumericProfile) and column.distribution.is_date
    }
    by_reason: dict[tuple[tuple[str, ...], tuple[str, ...]], list[RankedRow]] = {}
    for row in ranked:
        if row.flagged and row.reasons:
            # Use the first reason only, with the columns in table order.
            first = sorted(row.reason_sets[0], key=lambda r: order.get(r.column, -1))
            names = tuple(reason.column for reason in first)
            kinds = tuple(map(_kind, first))
            odd = replace(row, reasons=tuple(first))
            by_reason.setdefault((names, kinds), []).append(odd)
    # Do not report shared values of hidden columns.
    shown = [c.name for c in columns if c.name in listed.frame.columns and not c.hidden]
    found = []
    for (names, kinds), rows in by_reason.items():
        for clause, alike in _alike(kinds, rows, is_date=names[0] in dates):
            sentence = f"{len(alike):,} rows: {clause}"
            others = [name for name in shown if name not in names]
            places = np.array([row.rank - 1 for row in alike])
            common = _common(listed, places, others, sample)
            if common is not None:
                column, value, n_sharing = common
                who = "all" if n_sharing == len(alike) else f"{n_sharing:,} of them"
                sentence += f", {who} with {quoted(column)} {quoted_cell(value)}"
            positions = tuple(row.row for row in alike)
            shared = None if common is None else common[:2]
            # The value may itself end with a full stop: "12:30 a.m.".
            found.append(Pattern(positions, names, f"{sentence.removesuffix('.')}.", shared))
    return tuple(sorted(found, key=lambda pattern: -len(pattern.rows)))


def _common(
    listed: Table, places: IntArray, others: Sequence[str], sample: Table
) -> tuple[str, str, int] | None:
    """Find a column in which most rows share a value; return both, and how many do."""
    n, best, rarest = len(places), None, BY_CHANCE
    for name in others:
        column = listed.column[name]
        texts = column.texts.gather(places).to_list()
        value, n_sharing = Counter(texts).most_common(1)[0]
        if value is None or n_sharing < MOST * n:
            continue
        n_having = int((sample.column[name].texts == value).sum())
        share = (max(n_having - n_sharing, 0) + 1) / (max(sample.n_rows - n, 1) + 1)
        chance = len(others) * float(betainc(n_sharing, n - n_sharing + 1, share))
        if share <= FEW and chance < rarest:
            rarest, text = chance, column.text(int(places[texts.index(value)]))
            best = name, text, n_sharing
    return best


def _kind(reason: Reason) -> str:
    """Return a word for how a value deviates, the same for all values of a pattern."""
    if reason.seen == MISSING:
        return "missing"
    if reason.side:
        return reason.side
    return f"reads {reason.seen_value}" if isinstance(reason.seen_value, str) else "other"


def _alike(
    kinds: tuple[str, ...], rows: list[RankedRow], *, is_date: bool
) -> Iterator[tuple[str, list[RankedRow]]]:
    """Split rows with the same columns and kinds into patterns, each with its description."""
    if {*kinds} <= {"above", "below"}:
        if len({tuple(reason.seen for reason in odd.reasons) for odd in rows}) == 1:
            kinds = ("same",) * len(kinds)
        elif len(kinds) == 1 and not is_date:
            for size, like in _like_factors(rows):
                yield _clauses(like, [size]), like
                rows = [odd for odd in rows if odd not in like]
    if len(rows) >= MIN_ROWS:
        yield _clauses(rows, kinds), rows


def _like_factors(rows: list[RankedRow]) -> Iterator[tuple[str, list[RankedRow]]]:
    sized: list[tuple[float, RankedRow]] = []
    for odd in rows:
        seen, expected = odd.reasons[0].seen_value, odd.reasons[0].expected_value
        if isinstance(seen, float) and isinstance(expected, float):
            sized.append((seen / expected if expected else 0.0, odd))
    for sign in (1.0, -1.0):
        of_sign = sorted(((s, odd) for s, odd in sized if sign * s > 0), key=lambda one: one[0])
        sizes = np.abs([size for size, _ in of_sign])
        gaps = np.flatnonzero(np.abs(np.diff(np.log(sizes))) > np.log(SMALLEST_GAP)) + 1
        for part in np.split(np.arange(len(of_sign)), gaps):
            if len(part) < MIN_ROWS or sizes[part].max() > LARGEST_SPREAD * sizes[part].min():
                continue
            like = sorted((of_sign[i][1] for i in part), key=lambda odd: odd.rank)
            size = sign * float(np.median(sizes[part]))
            if words := _how_far(size):
                yield f"{words} what the rest suggests", like


def _how_far(size: float) -> str:
    """Write the multiple of the expected value; empty if "above" or "below" says enough."""
    if size >= SMALLEST_FACTOR:
        return f"about {_rounded(size)} times"
    if 0 < size <= 1 / SMALLEST_FACTOR:
        return f"about 1/{_rounded(1 / size)} of"
    return "of the opposite sign of" if 1 / SMALLEST_FACTOR < -size < SMALLEST_FACTOR else ""


def _rounded(size: float) -> str:
    rounded = float(f"{size:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _clauses(rows: list[RankedRow], kinds: Sequence[str]) -> str:
    """Describe how the columns of some rows are odd; columns that are odd alike share a clause."""
    names: dict[str, list[str]] = {}
    for place, kind in enumerate(kinds):
        reasons = [odd.reasons[place] for odd in rows]
        clause = CLAUSES.get(kind, f"is {kind}")
        if kind == "same" or kind.startswith("reads "):
            expected = {reason.expected for reason in reasons}
            meant = expected.pop() if len(expected) == 1 else ""
            seen, meant = map(quoted_cell, cut_apart(reasons[0].seen, meant))
            clause = f"reads {seen}" + f" where {meant} was expected" * bool(meant)
        names.setdefault(clause, []).append(quoted(reasons[0].column))
    clauses = [_say_of(of, clause) for clause, of in names.items() if clause not in (ABOVE, BELOW)]
    if ABOVE in names and BELOW in names:
        higher, lower = _say_of(names[ABOVE], "is above"), in_prose(names[BELOW])
        clauses.append(f"{higher} and {lower} {BELOW.removeprefix('is ')}")
    else:
        clauses += [_say_of(names[side], side) for side in (ABOVE, BELOW) if side in names]
    return ", ".join(clauses)


def _say_of(names: Sequence[str], clause: str) -> str:
    if len(names) > 1:
        verb, rest = clause.split(" ", 1)
        whose = "all" if len(names) > 2 else "both"
        clause = f"{PLURALS.get(verb, f'{whose} read')} {rest}"
    return f"{in_prose(names)} {clause}"
