"""Compare two screenings: rows listed in only one, and columns distributed differently.

Both are folders of finished runs. Rows are matched by an identifier, or by their cells if no column
identifies them in both tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.errors import InputError, about
from kpca_apps.names import cut_apart, listed, one_line, quoted, quoted_cell, reason_of
from kpca_apps.novelty.checks.drift import RATE, moved_columns
from kpca_apps.novelty.columns.encoding import ColumnSummary
from kpca_apps.novelty.columns.parts import AnyTable, Execution, draw_sample, in_parts
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.novelty.result import ListedRow, RunInfo, RunSummary, ScreeningDiff
from kpca_apps.novelty.screening.model import library_versions
from kpca_apps.system.arrays import HashArray
from kpca_apps.system.limits import require_memory
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.write import as_written

KIND = "novelty screening"
SCORED = ("scored.csv", "scored.parquet")
MOST_ROWS = 1_000  # maximum number of rows described in each list
MOST_CHANGED = 10  # maximum number of changed cells described in a row
# Settings that depend on the table and are therefore not compared.
OF_TABLE = ("rows fitted", "ridge (absolute)", "landmarks miss", "rows explained", "landmarks")
CELL = 60
HEADER = 1 << 20  # number of characters that surely contain the header of a scored table


@dataclass(frozen=True)
class _Run:
    folder: Path
    result: Mapping[str, Any]
    table: AnyTable  # the scored table

    @cached_property
    def columns(self) -> dict[str, Mapping[str, Any]]:
        return {str(column["name"]): column for column in self.result["columns"]}

    @cached_property
    def written(self) -> dict[str, str]:
        return written_names(self.columns, self.table)

    def summary(self, hidden: Collection[str] = ()) -> RunSummary:
        """Summarise the run; leave out its findings if the other run hides more columns."""
        n_rows, n_flagged = int(self.result["n_rows"]), int(self.result["n_flagged"])
        sentence = str(self.result["sentence"])
        if not {*hidden} <= {name for name, one in self.columns.items() if one["hidden"]}:
            sentence = f"{n_flagged:,} of {n_rows:,} rows are flagged."
        table = str(self.result["source"]["name"])
        return RunSummary(self.folder.name, table, n_rows, n_flagged, sentence)


def diff_runs(
    old: Path, new: Path, *, command: str = "", execution: Execution | None = None
) -> ScreeningDiff:
    """Compare the folders of two finished runs of ``screen`` or ``score``.

    A column that either run hides is not compared: its cells are empty, or must not be shown.
    """
    runs = _read(old), _read(new)
    columns = [run.columns for run in runs]
    hidden = {name for own in columns for name, column in own.items() if column["hidden"]}
    in_both = [name for name in columns[0] if name in columns[1]]
    shared = [name for name in in_both if name not in hidden]
    key = _identifier(columns, shared, [run.table.source.n_rows for run in runs])
    keys = [key] if key else shared
    if not keys:
        first, second = (one_line(str(run.folder), 200) for run in runs)
        raise InputError(
            f"{second}: every column that {second} shares with {first} is hidden, so rows cannot "
            "be matched; hide fewer columns in both runs."
            if in_both
            else f"{second}: has no column in common with {first}; compare runs on similar tables."
        )
    listed = [_rows(run, keys, shared) for run in runs]
    # For each list, find the same rows in the other run's table.
    others = [
        _rows(run, keys, shared, wanted=theirs["key"].to_list())
        for run, theirs in zip(runs, reversed(listed), strict=True)
    ]
    hashes = [_key_hashes(run, keys) for run in runs]
    is_apart = not np.isin(hashes[0], hashes[1]).any()
    if is_apart:
        # Tables without a common row are not compared: every row would be new or removed.
        listed = [frame.clear() for frame in listed]
    describe = partial(_listed, shared=shared, hidden=hidden, key=key)
    settings_changed = _settings_changed(*(run.result for run in runs))
    not_compared = tuple(name for name in in_both if name in hidden)
    visible = " that no run hides" if not_compared else ""
    return ScreeningDiff(
        old=runs[0].summary(hidden),
        new=runs[1].summary(hidden),
        matched_by=f'the column "{one_line(key)}"'
        if key
        else f"the cells of all shared columns{visible}",
        **_lists(listed, others, describe),
        moved=_moved(runs, shared, execution or Execution()),
        added_columns=tuple(name for name in columns[1] if name not in columns[0]),
        removed_columns=tuple(name for name in columns[0] if name not in columns[1]),
        hidden_columns=not_compared,
        kinds=_kinds_changed(*runs, hidden),
        settings_changed=settings_changed,
        is_apart=is_apart,
        run=RunInfo(
            settings={"rows listed": MOST_ROWS, "rate of the tests of columns": RATE},
            versions=library_versions(),
            warnings=tuple(_warnings(columns, key, not_compared, settings_changed)),
            command=command,
        ),
    )


def _read(folder: Path) -> _Run:
    """Read the folder of a run; InputError if it is not the folder of a finished run."""
    label, path = one_line(str(folder), 200), folder / "result.json"
    again = "screen the table again."
    if not folder.is_dir():
        raise InputError(f"{label}: is not a folder; name the folder that a screening wrote.")
    if path.exists() and not path.is_file():
        raise InputError(f"{label}: its result.json is not a file; {again}")
    try:
        with about(label):
            require_memory(path.stat().st_size)
        result = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{label}: has no result.json that can be read ({reason_of(error)}); name the folder "
            "that a screening wrote."
        ) from None
    except (ValueError, RecursionError):
        raise InputError(f"{label}: its result.json is damaged; {again}") from None
    if not isinstance(result, dict) or result.get("kind") != KIND:
        raise InputError(
            f"{label}: is not the folder of a screening; name one that screen or score wrote."
        )
    scored = next((folder / name for name in SCORED if (folder / name).exists()), None)
    if scored is None:
        raise InputError(f"{label}: has no scored.csv or scored.parquet; {again}")
    delimiter = _delimiter(scored) if scored.suffix == ".csv" else None
    table = open_table(scored, delimiter=delimiter, layout="off")
    run = _Run(folder, result, table)
    try:
        n_rows = run.summary().n_rows
        is_same = len(run.written) == len(run.columns)
        [(column["hidden"], column["role"]) for column in result["columns"]]
        _settings_changed(result, result)
        _kinds_changed(run, run, ())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise InputError(f"{label}: its result.json is of another version; {again}") from None
    found = {*table.columns[len(run.columns) :]}
    is_same = is_same and {"flagged", "rank", "reason_column"} <= found
    if not is_same or n_rows != table.source.n_rows:
        raise InputError(
            f"{label}: {scored.name} is not the table that result.json describes; {again}"
        )
    return run


def written_names(columns: Iterable[str], scored: AnyTable) -> dict[str, str]:
    """Return the names of input columns in the scored table; leave out columns it lacks.

    Input columns come first, in order. In names, writing may add an apostrophe or endings. Reading
    strips spaces and adds numbers to equal names.
    """
    pairs = zip(columns, scored.columns, strict=False)
    shape = r"'?\s*{}\s*(_input)*(_\d+)?"
    return {
        name: written
        for name, written in pairs
        if re.fullmatch(shape.format(re.escape(name.strip())), written)
    }


def _delimiter(scored: Path) -> str:
    """Return the delimiter of a scored table, found between two columns that the table adds."""
    with scored.open(encoding="utf-8", errors="replace") as file:
        found = re.findall("novelty_score(.)flagged", file.read(HEADER))
    return found[-1] if found else ","


def _identifier(
    columns: Sequence[Mapping[str, Mapping[str, Any]]], shared: Sequence[str], n_rows: Sequence[int]
) -> str | None:
    """Return a column of role "id", or else "identifier", without repeats in either table."""
    for role in ("id", "identifier"):
        for name in shared:
            if all(
                own[name]["role"] == role and own[name]["n_distinct"] == n
                for own, n in zip(columns, n_rows, strict=True)
            ):
                return name
    return None


def _rows(
    run: _Run, keys: Sequence[str], shared: Sequence[str], wanted: Collection[str] | None = None
) -> pl.DataFrame:
    marked, table = pl.lit(False), run.table
    # A row is listed if it is flagged or has an odd cell, whose column is then its `reason_column`.
    is_flagged = _text(["flagged"]).str.to_lowercase().eq("true")
    if "accepted" in table.columns[len(run.columns) :]:
        marked = _text(["accepted"]).str.to_lowercase().eq("true")
    parts, n_before = list[pl.DataFrame](), 0
    for part in in_parts(table).tables():
        frame = part.frame.select(
            pl.int_range(n_before + 1, n_before + 1 + pl.len()).alias("row"),
            _text([run.written[name] for name in keys]).alias("key"),
            is_flagged.or_(_text(["reason_column"]) != "").alias("is listed"),
            marked.alias("is accepted"),
            pl.col("rank").cast(pl.Int64, strict=False).alias("place"),
            *("reason_column", "seen", "expected"),
            *(_text([run.written[name]]).alias(f"cell {name}") for name in shared),
        )
        kept = "is listed" if wanted is None else pl.col("key").is_in([*wanted])
        rows = frame.with_columns(as_written(frame["key"])).filter(kept)
        parts.append(rows.with_columns(map(as_written, rows.select(pl.selectors.string()))))
        n_before += part.n_rows
    return pl.concat(parts).sort("place").unique("key", keep="first", maintain_order=True)


def _key_hashes(run: _Run, keys: Sequence[str]) -> HashArray:
    names = [run.written[name] for name in keys]
    parts = (part.frame.select(key=_text(names))["key"] for part in in_parts(run.table).tables())
    return np.concatenate([as_written(key).hash(seed=0).to_numpy() for key in parts])


def _text(names: Sequence[str]) -> pl.Expr:
    # `pl.col` would read some names as patterns.
    columns = map(pl.selectors.by_name, names)
    cells = [column.cast(pl.String).fill_null("").str.strip_chars() for column in columns]
    return cells[0] if len(cells) == 1 else pl.concat_str(cells, separator="\x1f")


def _lists(
    listed: Sequence[pl.DataFrame],
    others: Sequence[pl.DataFrame],
    describe: Callable[..., ListedRow],
) -> dict[str, tuple[ListedRow, ...]]:
    before, now = ({row["key"]: row for row in frame.to_dicts()} for frame in others)
    lists: dict[str, list[ListedRow]] = {"appeared": [], "removed": [], "stayed": []}
    for row in listed[1].to_dicts():
        was = before.get(row["key"])
        stayed = was is not None and was["is listed"]
        lists["stayed" if stayed else "appeared"].append(describe(row, was, row))
    for row in listed[0].to_dicts():
        become = now.get(row["key"])
        if become is None or not become["is listed"]:
            lists["removed"].append(describe(row, row, become))
    return {name: tuple(rows[:MOST_ROWS]) for name, rows in lists.items()}


def _listed(
    row: Mapping[str, Any],
    was: Mapping[str, Any] | None,
    become: Mapping[str, Any] | None,
    *,
    shared: Sequence[str],
    hidden: Collection[str],
    key: str | None,
) -> ListedRow:
    changed = []
    for name in shared if was is not None and become is not None else ():
        assert was is not None and become is not None
        cells = was[f"cell {name}"], become[f"cell {name}"]
        if cells[0] != cells[1]:
            changed.append((name, one_line(cells[0], CELL), one_line(cells[1], CELL)))
    reason = columns = row["reason_column"] or ""
    if columns and not any(f", {name}, " in f", {columns}, " for name in hidden):
        # Put the columns named in the reason first, since only the first changes are described.
        changed.sort(key=lambda cell: f", {cell[0]}, " not in f", {columns}, ")
        seen, expected = map(quoted_cell, cut_apart(row["seen"] or "", row["expected"] or ""))
        reason = f"{quoted(columns)}: {seen}, expected {expected}"
    before, now = (
        int(one["place"]) if one is not None and one["is listed"] else None for one in (was, become)
    )
    return ListedRow(
        name=one_line(row["key"], CELL) if key else f"row {row['row']:,}",
        before=before,
        now=now,
        in_both=was is not None and become is not None,
        reason=one_line(reason, 200),
        accepted=any(one is not None and one["is accepted"] for one in (was, become)),
        changed=tuple(changed[:MOST_CHANGED]),
    )


def _kinds_changed(
    old: _Run, new: _Run, hidden: Collection[str]
) -> tuple[tuple[str, int, int], ...]:
    """Return the patterns of odd rows with their counts in both runs, most frequent first.

    Patterns of columns that a run hides are left out, because they quote values.
    """
    before, now = (
        {
            str(one["sentence"]).split(": ", 1)[-1]: len(one["rows"])
            for one in run.result["findings"]["patterns"]
            if not {*one["columns"], *(one["common"] or ())[:1]} & {*hidden}
        }
        for run in (old, new)
    )
    kinds = ((name, before.get(name, 0), now.get(name, 0)) for name in {**before, **now})
    return tuple(sorted(kinds, key=lambda kind: -max(kind[1:])))


def _moved(runs: Sequence[_Run], shared: Sequence[str], work: Execution) -> Any:
    samples = [draw_sample(run.table, 0, work).table for run in runs]
    roles = {name: str(column["role"]) for name, column in runs[1].columns.items()}
    used = [name for name in shared if runs[1].columns[name]["used"]]
    cut = [
        replace(
            one,
            frame=one.frame.select(
                pl.selectors.by_name(run.written[name]).alias(name) for name in used
            ),
        )
        for one, run in zip(samples, runs, strict=True)
    ]
    if not used or min(sample.n_rows for sample in cut) < 3:
        return ()
    categorical = tuple(name for name in used if roles[name] in ("categorical", "boolean"))
    plan = infer_plan(cut[1], ColumnOptions(categorical=categorical))
    of_table = [
        [ColumnSummary.of(sample.column[spec.name], spec) for spec in plan.used] for sample in cut
    ]
    return moved_columns(of_table[0], of_table[1])


def _settings_changed(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[tuple[str, str, str], ...]:
    groups = "settings", "versions"
    found, pairs = [], [(old["run"][group], new["run"][group]) for group in groups]
    pairs.append((_columns_chosen(old), _columns_chosen(new)))
    for before, now in pairs:
        for name in dict.fromkeys([*before, *now]):
            values = before.get(name), now.get(name)
            if values[0] != values[1] and name not in OF_TABLE:
                before_text, now_text = (one_line(str(value), CELL) for value in values)
                found.append((str(name), before_text, now_text))
    return tuple(found)


def _columns_chosen(result: Mapping[str, Any]) -> dict[str, str]:
    columns = result["columns"]
    return {
        "excluded columns": ", ".join(c["name"] for c in columns if c["role"] == "excluded"),
        "hidden columns": ", ".join(c["name"] for c in columns if c["hidden"]),
    }


def _warnings(
    columns: Sequence[Mapping[str, Mapping[str, Any]]],
    key: str | None,
    hidden: Sequence[str],
    settings_changed: Sequence[tuple[str, str, str]],
) -> Iterator[str]:
    if settings_changed:
        names = ", ".join(name for name, *_ in settings_changed[:5])
        yield (
            f"The runs differ in their settings or versions ({names}): this alone may add rows to "
            "a list or remove them."
        )
    ids = {name for own in columns for name, column in own.items() if column["role"] == "id"}
    if ids and key not in ids:
        yield (
            f"{listed(sorted(ids))} does not differ in every row of both tables: rows are matched "
            f"by {'another column' if key else 'all their cells'}, so a row whose cells changed "
            "counts as removed and as new."
        )
    every = dict.fromkeys(name for own in columns for name in own)
    if only_one := [name for name in every if not all(name in own for own in columns)]:
        yield f"Not compared, as one table lacks them: {listed(only_one)}."
    if hidden:
        yield f"Not compared, as a run hides them: {listed(hidden)}."
