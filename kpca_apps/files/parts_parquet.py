"""Parquet in parts: one file or a folder of them, each part a range of rows of some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.files.binary import (
    DAMAGE,
    collected,
    damaged,
    far_dates,
)
from kpca_apps.files.formats import PARQUET_SUFFIXES
from kpca_apps.files.known import KnownFile
from kpca_apps.files.limits import require_columns
from kpca_apps.files.names import one_line, suggest
from kpca_apps.files.parquet_trial import require_readable

__all__ = ["ParquetFiles", "ParquetRows", "folder_files", "open_parquet"]


@dataclass(frozen=True)
class ParquetRows:
    """Rows of one part, out of one file or several that follow each other.

    Attributes
    ----------
    slices : tuple of (KnownFile, int, int)
        File, first row in it, and number of rows.
    as_text : frozenset of str
        Columns of dates that are read as text, as the whole table needs it.
    """

    slices: tuple[tuple[KnownFile, int, int], ...]
    as_text: frozenset[str]

    def read(self) -> tuple[pl.DataFrame, None]:
        """Return the rows, typed as those of the whole table."""
        frames = [self._slice(*where) for where in self.slices]
        return (frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=True)), None

    def _slice(self, file: KnownFile, offset: int, length: int) -> pl.DataFrame:
        file.check()
        scan = _scan([file.path]).slice(offset, length)
        return collected(scan, file.label, as_text=self.as_text)


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files that make one table.

    Attributes
    ----------
    files : tuple of KnownFile
        In the order of their rows.
    heights : tuple of int
        Rows of each.
    columns : tuple of str
        Names, the same in each.
    """

    files: tuple[KnownFile, ...]
    heights: tuple[int, ...]
    columns: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all."""
        return sum(self.heights)

    def parts(self, size: int) -> Iterator[ParquetRows]:
        """Yield how each part is read."""
        as_text = far_dates(_scan([file.path for file in self.files]), self.files[0].label)
        number, offset = 0, 0
        for start in range(0, self.n_rows, size):
            wanted, slices = min(size, self.n_rows - start), []
            while wanted:
                length = min(wanted, self.heights[number] - offset)
                if length:
                    slices.append((self.files[number], offset, length))
                wanted, offset = wanted - length, offset + length
                if offset == self.heights[number]:
                    number, offset = number + 1, 0
            yield ParquetRows(tuple(slices), as_text)


def open_parquet(files: Sequence[KnownFile]) -> ParquetFiles:
    """Look at what Parquet files hold, once another process could read all of it.

    Parameters
    ----------
    files : sequence of KnownFile
        At least one, in the order of their rows.

    Returns
    -------
    ParquetFiles
        Their columns and numbers of rows.

    Raises
    ------
    InputError
        If one is damaged, or has other columns than the first.
    """
    for file in files:
        _require_utf8(file)
    require_readable(files)
    heights = []
    first: dict[str, str] = {}
    for file in files:
        try:
            scan = _scan([file.path])
            columns = {name: _kind(dtype) for name, dtype in scan.collect_schema().items()}
            heights.append(int(scan.select(pl.len()).collect().item()))
        except DAMAGE as error:
            raise damaged(file.label, "Parquet", error) from None
        require_columns(file.label, len(columns))
        first = first or columns
        _refuse_others(columns, first, file.label, files[0].label)
    return ParquetFiles(tuple(files), tuple(heights), tuple(first))


def folder_files(path: Path) -> list[KnownFile]:
    """Name the Parquet files of a folder in the order of their names.

    What begins with a dot or an underscore is left out, as other readers do, and so are files that
    are not Parquet by their name.

    Raises
    ------
    InputError
        If there is none, the folder cannot be looked into, or there is a folder in it.
    """
    label = one_line(str(path), 200)
    try:
        found = sorted(item for item in path.iterdir() if not item.name.startswith((".", "_")))
    except OSError as error:
        raise InputError(f"{label}: cannot be looked into ({error.strerror}).") from None
    known = [_member(item) for item in found if item.suffix.lower() in PARQUET_SUFFIXES]
    if not known:
        raise InputError(
            f"{label}: this is a folder without Parquet files; name a file, or a folder of them."
        )
    for item in found:
        # Rows may be kept in folders by year or the like: to leave them out would be a loss.
        if item.is_dir():
            raise InputError(
                f"{one_line(str(item), 200)}: is a folder beside the Parquet files of {label}; "
                "put all files into one folder, or this one elsewhere."
            )
    return known


def _member(path: Path) -> KnownFile:
    """Take note of a file of a folder; refuse what bears the name of one and is none."""
    label = one_line(str(path), 200)
    if not path.is_file():
        raise InputError(
            f"{label}: is not a file, or a link that leads nowhere; repair or remove it."
        )
    try:
        return KnownFile.at(path, label)
    except OSError as error:
        raise InputError(f"{label}: cannot be looked at ({error.strerror}).") from None


def _require_utf8(file: KnownFile) -> None:
    """Refuse a path that the reader of Parquet cannot be told."""
    try:
        file.path.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"{file.label}: its path is not UTF-8, and Parquet is read by such paths only; rename "
            "it."
        ) from None


def _scan(paths: list[str]) -> pl.LazyFrame:
    return pl.scan_parquet(paths, glob=False)


def _kind(dtype: pl.DataType) -> str:
    """Types that read as the same are the same."""
    return "String" if dtype in (pl.Categorical, pl.Enum) else str(dtype)


def _refuse_others(columns: dict[str, str], first: dict[str, str], label: str, model: str) -> None:
    """Refuse a file whose columns are not those of the first."""
    for name in first:
        if name not in columns:
            raise InputError(
                f'{label}: has no column "{one_line(name)}", which {model} has; the files of a '
                f"folder make one table and need the same columns.{suggest(name, columns)}"
            )
    for place, name in enumerate(columns):
        if name not in first:
            raise InputError(
                f'{label}: its column "{one_line(name)}" is not in {model}; the files of a folder '
                "make one table and need the same columns."
            )
        if list(first)[place] != name or columns[name] != first[name]:
            here, there = one_line(columns[name]), one_line(first[name])
            what = "stands elsewhere" if columns[name] == first[name] else f"is {here}"
            raise InputError(
                f'{label}: its column "{one_line(name)}" {what}, and is {there} in {model}; '
                "write all files of the folder alike."
            )
