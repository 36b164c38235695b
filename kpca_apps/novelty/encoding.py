"""A table's columns to one matrix of finite numbers, and from the matrix back to names and cells.

Values (numbers, dates, text features) fill the columns the detector will standardise; indicators of
levels and of gaps come out already scaled and are listed in `TableEncoder.as_is`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.dates import DateFormat
from kpca_apps.files.names import suggest
from kpca_apps.files.tables import Table
from kpca_apps.files.values import Readings, cell_text, why_unreadable
from kpca_apps.novelty.coders import LevelCoder, ValueCoder, read_column
from kpca_apps.novelty.imputation import ConditionalMeanImputer
from kpca_apps.novelty.profiles import profile_columns
from kpca_apps.novelty.result import ColumnProfile
from kpca_apps.novelty.specs import LEVEL_ROLES, ColumnPlan, ColumnSpec, quoted

__all__ = ["ColumnGroup", "EncodedTable", "TableEncoder"]

FloatArray = NDArray[np.float64]

_LISTED = 5  # names or lines quoted in one sentence


@dataclass(frozen=True)
class ColumnGroup:
    """The matrix columns one column of the table became."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class EncodedTable:
    """A table as numbers.

    Attributes
    ----------
    matrix : (n, d) array
        Finite numbers, a row each.
    warnings : tuple of str
        What had to be done to the cells: whole sentences.
    """

    matrix: FloatArray
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class TableEncoder:
    """What was learnt from the columns of one table, to encode it and later ones alike.

    Attributes
    ----------
    plan : ColumnPlan
        What each column becomes.
    coders : tuple of ValueCoder and LevelCoder
        One a used column, in the order of the plan.
    imputer : ConditionalMeanImputer
        Fills missing values.

    Examples
    --------
    >>> import polars as pl
    >>> from kpca_apps.files.tables import table_from_frame
    >>> from kpca_apps.novelty.columns import infer_plan
    >>> frame = pl.DataFrame({"size": ["1.5", "2", "?", "4"], "sex": ["f", "f", "m", "m"]})
    >>> table = table_from_frame(frame)
    >>> encoder = TableEncoder.fit(table, infer_plan(table), contaminated=True)
    >>> encoder.groups
    (ColumnGroup(name='size', columns=(0, 1)), ColumnGroup(name='sex', columns=(2, 3, 4)))
    >>> encoder.as_is
    (1, 2, 3, 4)
    >>> encoder.encode(table).matrix.round(2)[:, :2]
    array([[1.5, 0. ],
           [2. , 0. ],
           [2.5, 1. ],
           [4. , 0. ]])
    """

    plan: ColumnPlan
    coders: tuple[ValueCoder | LevelCoder, ...]
    imputer: ConditionalMeanImputer

    @classmethod
    def fit(cls, table: Table, plan: ColumnPlan, *, contaminated: bool) -> TableEncoder:
        """Learn levels, features and how to fill gaps.

        Parameters
        ----------
        table : Table
            The reference, or the table to screen.
        plan : ColumnPlan
            Its plan.
        contaminated : bool
            Whether the table may hold outliers: then a gap is a fact about a row and gets an
            indicator. A clean reference only teaches how to fill gaps.

        Returns
        -------
        TableEncoder
        """
        coders: list[ValueCoder | LevelCoder] = []
        for spec in plan.used:
            cells = table.frame[spec.name]
            if spec.role in LEVEL_ROLES:
                coders.append(LevelCoder.fit(cells, spec))
            else:
                coders.append(ValueCoder.fit(cells, spec, gaps_tell=contaminated))
        blocks = [c.encode(table.frame[c.spec.name])[:, : c.n_values] for c in coders]
        return cls(plan, tuple(coders), ConditionalMeanImputer.fit(np.hstack(blocks)))

    @cached_property
    def groups(self) -> tuple[ColumnGroup, ...]:
        """Matrix columns of each used column; together they cover the matrix."""
        groups, start = [], 0
        for coder in self.coders:
            columns = tuple(range(start, start + coder.width))
            groups.append(ColumnGroup(coder.spec.name, columns))
            start += coder.width
        return tuple(groups)

    @cached_property
    def as_is(self) -> tuple[int, ...]:
        """Matrix columns that are scaled already: indicators of levels and gaps."""
        return tuple(
            column
            for coder, group in zip(self.coders, self.groups, strict=True)
            for column in group.columns[coder.n_values :]
        )

    def encode(self, table: Table) -> EncodedTable:
        """Turn a table into numbers, columns matched by name.

        Parameters
        ----------
        table : Table
            The table fitted on, or another with (at least) its used columns, in any order.

        Returns
        -------
        EncodedTable

        Raises
        ------
        InputError
            If a used column is missing, or most of its cells cannot be read as the plan says.
        """
        self._check_names(table)
        warnings = [self._extra_columns(table)]
        blocks, n_filled, filled = [], 0, []
        for coder in self.coders:
            cells = table.frame[coder.spec.name]
            readings = read_column(cells, coder.spec)
            warnings += [
                _unreadable_note(table, coder.spec, readings),
                _new_gaps_note(coder.spec, readings),
            ]
            blocks.append(coder.encode(cells))
            if coder.n_values and (gaps := int(np.isnan(blocks[-1][:, 0]).sum())):
                n_filled += gaps
                filled.append(coder.spec.name)
        warnings.append(_filled_note(n_filled, filled))
        matrix = np.hstack(blocks)
        values = np.setdiff1d(np.arange(matrix.shape[1]), np.array(self.as_is, dtype=np.int64))
        matrix[:, values] = self.imputer.fill(matrix[:, values])
        return EncodedTable(matrix, tuple(text for text in warnings if text))

    def describe(self, group: int, values: FloatArray) -> tuple[str, float | str | None]:
        """Write an expected value as text, and as a number or level to draw.

        Parameters
        ----------
        group : int
            Position in `groups`.
        values : (k,) array
            The values of its k matrix columns.

        Returns
        -------
        text : str
        value : float, str or None
            ``None`` for what is missing, free text, or hidden.
        """
        coder = self.coders[group]
        return ("(hidden)", None) if coder.spec.hidden else coder.describe(values)

    def seen(self, table: Table, row: int, group: int) -> tuple[str, float | str | None]:
        """Write the value of a row (0 = first) as it stands in the table, and one to draw."""
        coder = self.coders[group]
        if coder.spec.hidden:
            return "(hidden)", None
        return coder.seen(table.frame[coder.spec.name], row)

    def profiles(self, table: Table) -> tuple[ColumnProfile, ...]:
        """Say what each column of a table became and how its values lie, in its own order."""
        return profile_columns(table, self.plan)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that was fitted, as what JSON can hold and as arrays."""
        meta = {"plan": self.plan.to_dict(), "coders": [coder.to_dict() for coder in self.coders]}
        arrays = {
            "impute_mean": self.imputer.mean,
            "impute_scale": self.imputer.scale,
            "impute_precision": self.imputer.precision,
        }
        return meta, arrays

    @classmethod
    def from_state(
        cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> TableEncoder:
        """Turn the result of `to_state` back into an encoder.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is no such result.
        """
        plan = ColumnPlan.from_dict(meta["plan"])
        coders = tuple(
            (LevelCoder if spec.role in LEVEL_ROLES else ValueCoder).from_dict(spec, state)
            for spec, state in zip(plan.used, meta["coders"], strict=True)
        )
        n_values = sum(coder.n_values for coder in coders)
        return cls(plan, coders, ConditionalMeanImputer.from_state(arrays, n_values))

    def _check_names(self, table: Table) -> None:
        names = table.frame.columns
        for spec in self.plan.used:
            if spec.name not in names:
                raise InputError(
                    f"{table.source.name}: column {quoted(spec.name)} is missing, which the model "
                    f"uses; add it, or fit a model without it.{suggest(spec.name, names)}"
                )

    def _extra_columns(self, table: Table) -> str:
        known = {spec.name for spec in self.plan.specs}
        extra = [name for name in table.frame.columns if name not in known]
        if not extra:
            return ""
        noun = "column" if len(extra) == 1 else "columns"
        return f"{noun.capitalize()} not in the reference, left unused: {_listed(extra)}."


def _unreadable_note(table: Table, spec: ColumnSpec, readings: Readings) -> str:
    """Name the cells that do not read as values; refuse a column made mostly of them."""
    rows = np.flatnonzero(readings.unreadable)
    if not rows.size:
        return ""
    kind = "possible dates" if isinstance(spec.format, DateFormat) else "numbers"
    first = "" if spec.hidden else f" ({quoted(cell_text(table.frame[spec.name], int(rows[0])))})"
    if spec.format is not None and (
        why := why_unreadable(table.frame[spec.name].gather(rows), spec.format)
    ):
        first = f"{first}, {why}"
    unread = "1 cell does not read so" if rows.size == 1 else f"{rows.size} cells do not read so"
    if 2 * rows.size > (~readings.missing).sum():
        raise InputError(
            f"{table.source.name}, {_place(table, rows[:1])}: column {quoted(spec.name)} holds "
            f"{kind} in the reference, but {unread}, first this one"
            f"{first}; correct them, or fit a model without the column."
        )
    what = f"1 cell is no {kind[:-1]}" if rows.size == 1 else f"{rows.size} cells are no {kind}"
    counts = "counts" if rows.size == 1 else "count"
    return (
        f"Column {quoted(spec.name)}: {what} and {counts} as missing: {_place(table, rows)}{first}."
    )


def _new_gaps_note(spec: ColumnSpec, readings: Readings) -> str:
    """Warn of gaps in a column of which the reference had none."""
    n_gaps = int((readings.missing | readings.unreadable).sum())
    if spec.n_missing or not n_gaps:
        return ""
    rows = "1 row lacks" if n_gaps == 1 else f"{n_gaps} rows lack"
    return (
        f"Column {quoted(spec.name)}: {rows} a value, which no row of the reference did; "
        "false alarms may be more frequent than stated."
    )


def _filled_note(n_filled: int, names: list[str]) -> str:
    if not n_filled:
        return ""
    cells = "1 missing value was" if n_filled == 1 else f"{n_filled} missing values were"
    return f"{cells} filled with what the other columns suggest, in {_listed(names)}."


def _place(table: Table, rows: NDArray[np.int64]) -> str:
    """Say where rows are: by line of the file if it has lines, else by row."""
    word, numbers = ("row", rows + 1) if table.lines is None else ("line", table.lines[rows])
    shown = ", ".join(str(number) for number in numbers[:_LISTED])
    more = f" and {rows.size - _LISTED} more" if rows.size > _LISTED else ""
    return f"{word}{'s' if rows.size > 1 else ''} {shown}{more}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(quoted(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
