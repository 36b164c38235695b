"""A table's columns to one matrix of finite numbers, and from the matrix back to names and cells.

Values (numbers, dates, text features) fill the columns the detector will standardise; indicators of
levels and of gaps come out already scaled and are listed in `TableEncoder.as_is`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.names import suggest
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.result import OddCell
from kpca_apps.novelty.table.cell_faults import (
    CellFaults,
    ColumnFaults,
    fault_sentences,
    listed,
    places_of,
)
from kpca_apps.novelty.table.cell_rules import CellRules
from kpca_apps.novelty.table.coders import LevelCoder, ValueCoder
from kpca_apps.novelty.table.imputation import ConditionalMeanImputer
from kpca_apps.novelty.table.odd_cells import OddValues, odd_cells
from kpca_apps.novelty.table.profiles import count_missing
from kpca_apps.novelty.table.row_hashes import hash_rows
from kpca_apps.novelty.table.specs import LEVEL_ROLES, ColumnPlan, quoted

__all__ = ["ColumnGroup", "Noted", "TableEncoder"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnGroup:
    """The matrix columns one column of the table became."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Noted:
    """What the cells of a table, or of a part of it, hold.

    Attributes
    ----------
    faults : CellFaults
        Those that are no values, and odd ones.
    hashes : (n,) array
        Of the rows, to find equal ones.
    """

    faults: CellFaults
    hashes: NDArray[np.uint64]


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
    >>> from kpca_apps.files.tables.opening import table_from_frame
    >>> from kpca_apps.novelty.table.columns import infer_plan
    >>> frame = pl.DataFrame({"size": ["1.5", "2", "?", "4"], "sex": ["f", "f", "m", "m"]})
    >>> table = table_from_frame(frame)
    >>> encoder = TableEncoder.fit(table, infer_plan(table), contaminated=True)
    >>> encoder.groups
    (ColumnGroup(name='size', columns=(0, 1)), ColumnGroup(name='sex', columns=(2, 3, 4)))
    >>> encoder.as_is
    (1, 2, 3, 4)
    >>> encoder.matrix(table).round(2)[:, :2]
    array([[1.5, 0. ],
           [2. , 0. ],
           [2.5, 1. ],
           [4. , 0. ]])
    """

    plan: ColumnPlan
    coders: tuple[ValueCoder | LevelCoder, ...]
    imputer: ConditionalMeanImputer

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        if tuple(coder.spec for coder in self.coders) != self.plan.used:
            raise ValueError("its coders are not those of its plan")
        if len(self.imputer.mean) != sum(coder.n_values for coder in self.coders):
            raise ValueError("its moments are not those of its columns")

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
            column = table.column(spec.name)
            if spec.role in LEVEL_ROLES:
                coders.append(LevelCoder.fit(column, spec))
            else:
                coders.append(ValueCoder.fit(column, spec, gaps_tell=contaminated))
        of_values = [coder for coder in coders if coder.n_values]
        blocks = [c.encode(table.column(c.spec.name))[:, : c.n_values] for c in of_values]
        values = np.hstack([np.empty((table.frame.height, 0)), *blocks])
        return cls(plan, tuple(coders), ConditionalMeanImputer.fit(values))

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

    @property
    def width(self) -> int:
        """Columns of the matrix."""
        return sum(coder.width for coder in self.coders)

    def matrix(self, table: Table) -> FloatArray:
        """Turn the rows of a table, or of a part of it, into finite numbers, shape (n, d).

        What a row becomes depends on no other row.
        """
        matrix = np.hstack([coder.encode(table.column(coder.spec.name)) for coder in self.coders])
        if np.isnan(matrix).any():
            columns = np.arange(matrix.shape[1])
            values = np.setdiff1d(columns, np.array(self.as_is, dtype=np.int64))
            matrix[:, values] = self.imputer.fill(matrix[:, values])
        return matrix

    def note(self, table: Table, rules: CellRules, first_row: int = 0) -> Noted:
        """Look through the cells of a table or of a part of it; parameters as of `faults`."""
        names = [spec.name for spec in self.plan.used]
        return Noted(self.faults(table, first_row, rules), hash_rows(table.frame, names))

    def faults(
        self, table: Table, first_row: int = 0, rules: CellRules | None = None
    ) -> CellFaults:
        """Count the cells that are no values, in a table or in a part of it.

        Parameters
        ----------
        table : Table
            The rows.
        first_row : int
            Position of the first of them in the whole table.
        rules : CellRules, optional
            What the columns allow, to collect the cells that are odd by themselves as well.
        """
        places, used, odd = places_of(table, first_row), [], []
        for number, coder in enumerate(self.coders):
            column, spec = table.column(coder.spec.name), coder.spec
            used.append(ColumnFaults.of(column, spec, places))
            if rules is not None:
                rule = rules.columns[number]
                odd.append(OddValues.found(column, spec, rule, first_row, places))
        return CellFaults(tuple(used), count_missing(table, self.plan), tuple(odd))

    def odd_cells(
        self, faults: CellFaults, rules: CellRules, *, in_lines: bool
    ) -> tuple[tuple[OddCell, ...], int]:
        """Put the odd cells of a whole table into words; how many there are in all comes second."""
        notations = [c.notation if isinstance(c, ValueCoder) else None for c in self.coders]
        columns = zip(self.plan.used, rules.columns, notations, faults.odd, strict=True)
        return odd_cells(tuple(columns), in_lines=in_lines)

    def say_faults(
        self,
        faults: CellFaults,
        names: Sequence[str],
        table: str,
        *,
        in_lines: bool,
        drawn: bool = False,
    ) -> tuple[str, ...]:
        """Say what had to be done to the cells of a whole table.

        Parameters
        ----------
        faults : CellFaults
            Of all its rows.
        names : sequence of str
            Of its columns.
        table : str
            What it is called.
        in_lines : bool
            Whether its rows start on lines of a file.
        drawn : bool
            Whether the columns were learned from rows drawn from this very table.

        Raises
        ------
        InputError
            If most cells of a column cannot be read as the plan says.
        """
        used = self.plan.used
        said = fault_sentences(faults, used, table, in_lines=in_lines, drawn=drawn)
        return tuple(filter(None, (self._extra_columns(names), *said)))

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
        return coder.seen(table.column(coder.spec.name), row)

    def check_names(self, names: Sequence[str], table: str) -> None:
        """Refuse a table without a column that is used.

        Raises
        ------
        InputError
            Naming the column.
        """
        for spec in self.plan.used:
            if spec.name not in names:
                raise InputError(
                    f"{table}: column {quoted(spec.name)} is missing, which the model "
                    f"uses; add it, or fit a model without it.{suggest(spec.name, names)}"
                )

    def _extra_columns(self, names: Sequence[str]) -> str:
        known = {spec.name for spec in self.plan.specs}
        extra = [name for name in names if name not in known]
        if not extra:
            return ""
        noun = "column" if len(extra) == 1 else "columns"
        return f"{noun.capitalize()} not in the reference, left unused: {listed(extra)}."
