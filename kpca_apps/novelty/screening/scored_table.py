"""The scored table, written as it is read: at once, or part by part by whoever reads the parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.scored import open_scored, scored_bytes, scored_kind, scored_notes
from kpca_apps.files.tables.table import PartedTable, TablePart
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.table.parted_rows import Execution, in_parts
from kpca_apps.novelty.table.rows import AnyTable

__all__ = ["write_scored_table"]

Found = Mapping[str, NDArray[Any] | None]


@dataclass(frozen=True)
class _ScoredPart:
    """A part of a table and what was found about its rows."""

    part: TablePart
    found: Found

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return self.part.stop - self.part.start

    def __str__(self) -> str:
        return str(self.part)


def write_scored_table(
    table: AnyTable, result: ScreeningResult, path: Path, execution: Execution | None = None
) -> tuple[str, ...]:
    """Write a table with the rarity or p-value, score, flag and rank of each row.

    Parameters
    ----------
    table : Table or PartedTable
        The table that was screened.
    result : ScreeningResult
        What was found.
    path : Path
        Where to, ``.csv`` or ``.parquet``.
    execution : Execution, optional
        Who works on a table that is read in parts.

    Returns
    -------
    tuple of str
        Sentences on input columns that had to be renamed.

    Raises
    ------
    InputError
        If the file cannot be written, or the table no longer be read.
    """
    found: Found = {
        "rarity": result.rarities,
        "p_value": result.p_values,
        "novelty_score": result.scores,
        "flagged": result.flagged,
        "rank": result.ranks,
    }
    table, kind = in_parts(table), scored_kind(path)
    with open_scored(path) as append:
        if not isinstance(table, PartedTable):
            append(scored_bytes(table, found, kind))
            return scored_notes(table.frame.columns, found)
        parts = _with_found(table, found)
        execution = execution or Execution()
        for data in execution.over("Writing rows", _bytes_of, parts, table.n_rows, kind):
            append(data)
    return scored_notes(table.columns, found)


def _with_found(table: PartedTable, found: Found) -> Iterator[_ScoredPart]:
    for part in table.parts:
        rows = slice(part.start, part.stop)
        here = {
            name: None if values is None else np.asarray(values[rows])
            for name, values in found.items()
        }
        yield _ScoredPart(part, here)


def _bytes_of(task: _ScoredPart, kind: str) -> bytes:
    return scored_bytes(task.part.read(), task.found, kind, header=task.part.number == 0)
