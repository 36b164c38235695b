"""What is wrong with the cells of a table, counted part by part and said once for the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.files.tables.values import Column
from kpca_apps.novelty.table.odd_cells import OddValues
from kpca_apps.novelty.table.specs import LEVEL_ROLES, ColumnSpec, quoted

__all__ = ["CellFaults", "ColumnFaults", "fault_sentences", "listed", "places_of"]

_LISTED = 5  # names quoted in one sentence


@dataclass(frozen=True)
class ColumnFaults:
    """Cells of one column, or of a part of it, that are no values.

    Attributes
    ----------
    n_cells, n_missing, n_unreadable : int
        All; those that are empty or say so; those that hold something else.
    n_filled : int
        Cells that were filled with what the other columns suggest.
    first_place : int
        Where the first unreadable cell is: its line of the file, or row, from 1; 0 without one.
    first, why : str
        That cell as it stands in the table, and what keeps all of them from being read, where it
        is one thing.

    Examples
    --------
    >>> half = ColumnFaults(10, 1, 1, 2, 4, "12O", "")
    >>> whole = half + ColumnFaults(10, 0, 2, 2, 13, "?!", "")
    >>> whole.n_unreadable, whole.first_place, whole.first
    (3, 4, '12O')
    """

    n_cells: int
    n_missing: int
    n_unreadable: int
    n_filled: int
    first_place: int = 0
    first: str = ""
    why: str = ""

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, places: NDArray[np.int64]) -> ColumnFaults:
        """Count the faults of a column read as `spec` says, whose cells stand at lines or rows."""
        readings = column.read(spec.format)
        rows = np.flatnonzero(readings.unreadable)
        first = why = ""
        if rows.size:
            first = column.text(int(rows[0]))
            why = "" if spec.format is None else column.take(rows).why_unreadable(spec.format)
        n_missing = int(readings.missing.sum())
        return cls(
            n_cells=len(column),
            n_missing=n_missing,
            n_unreadable=rows.size,
            n_filled=0 if spec.role in LEVEL_ROLES else n_missing + rows.size,
            first_place=int(places[rows[0]]) if rows.size else 0,
            first=first,
            why=why,
        )

    def __add__(self, other: ColumnFaults) -> ColumnFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        both = self.n_unreadable and other.n_unreadable
        return ColumnFaults(
            self.n_cells + other.n_cells,
            self.n_missing + other.n_missing,
            self.n_unreadable + other.n_unreadable,
            self.n_filled + other.n_filled,
            self.first_place or other.first_place,
            self.first if self.n_unreadable else other.first,
            (self.why if self.why == other.why else "") if both else self.why or other.why,
        )


@dataclass(frozen=True)
class CellFaults:
    """Cells of a table, or of a part of it, that are no values.

    Attributes
    ----------
    used : tuple of ColumnFaults
        Of the columns the model uses, in the order of its plan.
    unused_missing : tuple of int
        Missing cells of the other columns, in the order of the table.
    odd : tuple of OddValues
        Odd values of the columns the model uses; empty where nobody looked for them.
    """

    used: tuple[ColumnFaults, ...]
    unused_missing: tuple[int, ...]
    odd: tuple[OddValues, ...] = ()

    def __add__(self, other: CellFaults) -> CellFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        used = tuple(a + b for a, b in zip(self.used, other.used, strict=True))
        pairs = zip(self.unused_missing, other.unused_missing, strict=True)
        odd = tuple(a + b for a, b in zip(self.odd, other.odd, strict=True))
        return CellFaults(used, tuple(a + b for a, b in pairs), odd)


def places_of(table: Table, first_row: int = 0) -> NDArray[np.int64]:
    """Line of the file each row starts on, or its number where the file has no lines."""
    if table.lines is not None:
        return table.lines
    return np.arange(first_row + 1, first_row + table.frame.height + 1)


def fault_sentences(
    faults: CellFaults, specs: Sequence[ColumnSpec], name: str, *, in_lines: bool, drawn: bool
) -> tuple[str, ...]:
    """Say what had to be done to the cells of a whole table.

    Parameters
    ----------
    faults : CellFaults
        Of all its rows.
    specs : sequence of ColumnSpec
        Of the columns the model uses.
    name : str
        What the table is called.
    in_lines : bool
        Whether places are lines of a file.
    drawn : bool
        Whether the columns were learned from rows drawn from this very table.

    Returns
    -------
    tuple of str
        Whole sentences.

    Raises
    ------
    InputError
        If most cells of a column cannot be read.
    """
    said: list[str] = []
    word = "line" if in_lines else "row"
    for spec, column in zip(specs, faults.used, strict=True):
        said += [_unreadable_note(name, spec, column, word), _new_gaps_note(spec, column, drawn)]
    n_filled = sum(column.n_filled for column in faults.used)
    filled = [s.name for s, column in zip(specs, faults.used, strict=True) if column.n_filled]
    said.append(_filled_note(n_filled, filled))
    return tuple(filter(None, said))


def _unreadable_note(name: str, spec: ColumnSpec, faults: ColumnFaults, word: str) -> str:
    """Name the cells that do not read as values; refuse a column made mostly of them."""
    n = faults.n_unreadable
    if not n:
        return ""
    kind = "possible dates" if isinstance(spec.format, DateFormat) else "numbers"
    first = "" if spec.hidden else f" ({quoted(faults.first)})"
    if faults.why:
        first = f"{first}, {faults.why}"
    if 2 * n > faults.n_cells - faults.n_missing:
        unread = "1 cell does not read so" if n == 1 else f"{n} cells do not read so"
        raise InputError(
            f"{name}, {word} {faults.first_place}: column {quoted(spec.name)} holds "
            f"{kind} in the reference, but {unread}, first this one"
            f"{first}; correct them, or fit a model without the column."
        )
    what = f"1 cell is no {kind[:-1]}" if n == 1 else f"{n} cells are no {kind}"
    counts = "counts" if n == 1 else "count"
    where = f"{'on' if word == 'line' else 'in'} {word} {faults.first_place}"
    where = where if n == 1 else f"first {where}"
    return f"Column {quoted(spec.name)}: {what} and {counts} as missing, {where}{first}."


def _new_gaps_note(spec: ColumnSpec, faults: ColumnFaults, drawn: bool) -> str:
    """Warn of gaps in a column of which the rows learned from had none."""
    n_gaps = faults.n_missing + faults.n_unreadable
    if spec.n_missing or not n_gaps:
        return ""
    rows = "1 row lacks" if n_gaps == 1 else f"{n_gaps} rows lack"
    if drawn:
        return (
            f"Column {quoted(spec.name)}: {rows} a value, which no row drawn to learn from did; "
            "that a value is missing counts for nothing in their scores."
        )
    return (
        f"Column {quoted(spec.name)}: {rows} a value, which no row of the reference did; "
        "false alarms may be more frequent than stated."
    )


def _filled_note(n_filled: int, names: list[str]) -> str:
    if not n_filled:
        return ""
    cells = "1 missing value was" if n_filled == 1 else f"{n_filled:,} missing values were"
    return f"{cells} filled with what the other columns suggest, in {listed(names)}."


def listed(names: Sequence[str]) -> str:
    """Quote the first of some names, and say how many more there are."""
    shown = ", ".join(quoted(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
