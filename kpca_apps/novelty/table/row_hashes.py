"""Rows as 64-bit hashes: which of any number of rows are the same, in memory for a few of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["EqualRows", "equal_rows", "hash_rows"]

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]


@dataclass(frozen=True)
class EqualRows:
    """Groups of rows that have one hash.

    Attributes
    ----------
    n_repeats : int
        Rows that repeat an earlier one.
    n_groups : int
        Rows that are repeated.
    groups : tuple of int arrays
        Positions in the first groups, each in order, in order of their first rows.
    """

    n_repeats: int
    n_groups: int
    groups: tuple[IntArray, ...]


def hash_rows(frame: pl.DataFrame, names: list[str]) -> HashArray:
    """Hash the cells of some columns as they stand: equal rows have equal hashes in every part.

    Of n different rows two share a hash with a probability of n^2 / 2^65: of a billion, .03.
    """
    # Categories are numbered in each part for itself, and lists cannot be hashed: as text they can.
    plain = [
        frame[name] if _is_plain(frame[name].dtype) else _as_text(frame[name]) for name in names
    ]
    return pl.DataFrame(plain).hash_rows(seed=0).to_numpy()


def _is_plain(dtype: pl.DataType) -> bool:
    return dtype == pl.String or dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean


def _as_text(cells: pl.Series) -> pl.Series:
    if cells.dtype in (pl.Categorical, pl.Enum):
        return cells.cast(pl.String)
    return pl.Series(cells.name, [None if v is None else str(v) for v in cells], dtype=pl.String)


def equal_rows(hashes: HashArray, n_listed: int) -> EqualRows:
    """Find rows of one hash.

    Parameters
    ----------
    hashes : (n,) array
        A hash a row, perhaps mapped from a file.
    n_listed : int
        Groups whose rows are returned.

    Returns
    -------
    EqualRows

    Examples
    --------
    >>> found = equal_rows(np.array([7, 5, 7, 9, 5, 7], dtype=np.uint64), 1)
    >>> found.n_repeats, found.n_groups, found.groups[0].tolist()
    (3, 2, [0, 2, 5])
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    # Places, one after the other where a run of equal hashes goes on, that equal the one before.
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    ends = np.diff(repeats, append=-1) != 1
    stops = repeats[ends] + 1
    starts = repeats[np.insert(ends[:-1], 0, True)] - 1 if len(repeats) else repeats
    first = np.argsort(order[starts])[:n_listed]
    groups = tuple(order[starts[k] : stops[k]] for k in first)
    return EqualRows(len(repeats), len(starts), groups)
