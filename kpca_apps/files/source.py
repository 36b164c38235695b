"""Where a table came from, and how it was read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SourceInfo"]


@dataclass(frozen=True)
class SourceInfo:
    """Where a table came from, and how it was read.

    Attributes
    ----------
    name : str
        File name without its folder, or ``"standard input"``.
    format : str
        ``"csv"``, ``"parquet"``, ``"jsonl"``, ``"excel"``, or ``"frame"`` for a polars frame.
    sha256 : str
        Hash of the bytes as they lay on disk, 64 hex digits.
    n_bytes : int
        Their number.
    n_rows, n_columns : int
        Size of the table.
    encoding, delimiter : str or None
        How a text file was decoded and cut; ``None`` for binary formats.
    notes : tuple of str
        Whole sentences a reader should know ("Read as cp1252: ...").
    """

    name: str
    format: str
    sha256: str
    n_bytes: int
    n_rows: int
    n_columns: int
    encoding: str | None = None
    delimiter: str | None = None
    notes: tuple[str, ...] = ()
