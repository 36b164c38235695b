"""Row groups of Parquet files: how long they are, and a copy in shorter ones.

A reader that wants a few rows has to go through the whole group that holds them. Where groups are
many times longer than parts, each part would cost what the group costs, so the file is copied once.
The length stands in the footer of the file, in Thrift's compact protocol
(https://github.com/apache/parquet-format, ``FileMetaData``), which is walked here.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from kpca_apps.files.binary import DAMAGE, column_named, damaged
from kpca_apps.files.known import KnownFile
from kpca_apps.files.names import one_line
from kpca_apps.files.output import require_disk, spool_folder, storage_error
from kpca_apps.temporary import TemporaryPath

__all__ = ["LONGEST_GROUP", "group_rows", "regrouped"]

LONGEST_GROUP = 1 << 20
"""Rows of the longest group that is read as it is: what the most common writer makes."""

# Groups looked at: a writer makes all but the last alike.
_GROUPS = 16
_TAIL = 8
# Bytes of the footer looked at, which hold many more groups than that.
_FOOTER_BYTES = 1 << 24
_DEEPEST = 32
_ROW_GROUPS, _NUM_ROWS = 4, 3
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    1, 2, 3, 7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
_FIXED = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}


def group_rows(file: KnownFile) -> int:
    """Return the number of rows of the longest of the first row groups.

    Parameters
    ----------
    file : KnownFile
        A Parquet file.

    Returns
    -------
    int
        Rows; 0 where the footer cannot be followed, which is left to who reads the rows.
    """
    tail = file.read(max(file.size - _TAIL, 0), file.size)
    length = int.from_bytes(tail[:4], "little")
    if length + _TAIL > file.size:
        return 0
    start = file.size - _TAIL - length
    footer = _Walk(file.read(start, start + min(length, _FOOTER_BYTES)))
    try:
        return max(footer.groups(), default=0)
    except (IndexError, RecursionError):
        return 0


def regrouped(file: KnownFile, rows: int) -> tuple[KnownFile, TemporaryPath]:
    """Copy a file into groups of fewer rows.

    A column at a time, so that one column of one group is the most that is held in memory.

    Parameters
    ----------
    file : KnownFile
        The file.
    rows : int
        Rows of a group of the copy.

    Returns
    -------
    copy : KnownFile
        The same table.
    spool : TemporaryPath
        Where it lies, to be kept while it is read.

    Raises
    ------
    InputError
        If the file is damaged, or the disk has no room for the copy.
    """
    held = spool_folder()
    # The columns, then all of them together; packed for speed, they may be longer than they were.
    require_disk(held.path, 3 * file.size, file.label)
    try:
        scan = pl.scan_parquet(file.path, glob=False)
        columns = []
        for number, name in enumerate(scan.collect_schema().names()):
            columns.append(held.path / f"{number}.parquet")
            _sink(scan.select(column_named(name)), columns[-1], rows)
        copy = held.path / "rows.parquet"
        scans = [pl.scan_parquet(path, glob=False) for path in columns]
        _sink(pl.concat(scans, how="horizontal"), copy, rows)
        for path in columns:
            path.unlink()
    except DAMAGE as error:
        held.close()
        full = storage_error(error, one_line(str(held.path.parent), 200))
        raise full or damaged(file.label, "Parquet", error) from None
    return KnownFile.at(copy, file.label), held


def _sink(scan: pl.LazyFrame, path: Path, rows: int) -> None:
    scan.sink_parquet(path, row_group_size=rows, compression="lz4")


class _Walk:
    """A footer, walked from its first byte; an `IndexError` is its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def groups(self) -> list[int]:
        """Rows of the first row groups."""
        field = 0
        while (kind := self._byte()) != 0:
            field, kind = self._field(kind, field)
            if field == _ROW_GROUPS and kind == _LIST:
                size, _ = self._list()
                return [self._group_rows() for _ in range(min(size, _GROUPS))]
            self._skip(kind)
        return []

    def _group_rows(self) -> int:
        field, rows = 0, 0
        while (kind := self._byte()) != 0:
            field, kind = self._field(kind, field)
            if field == _NUM_ROWS:
                rows = self._signed()
            else:
                self._skip(kind)
        return rows

    def _field(self, head: int, last: int) -> tuple[int, int]:
        """Read the number of a field, told by its distance from the last, and its kind."""
        return (last + (head >> 4) if head >> 4 else self._signed()), head & 15

    def _skip(self, kind: int, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise RecursionError
        if kind in _FIXED:
            self.at += _FIXED[kind]
        elif kind == _BINARY:
            length = self._number()
            self.at += length
        elif kind in (_LIST, _SET):
            size, of = self._list()
            for _ in range(size):
                self._skip_element(of, depth)
        elif kind == _MAP:
            size = self._number()
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._skip_element(kinds >> 4, depth)
                self._skip_element(kinds & 15, depth)
        elif kind == _STRUCT:
            field = 0
            while (head := self._byte()) != 0:
                field, inner = self._field(head, field)
                self._skip(inner, depth + 1)
        else:
            self._number()
        if self.at > len(self.data):
            raise IndexError

    def _skip_element(self, kind: int, depth: int) -> None:
        # Truth values, which take no byte in a field, take one here.
        self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return (self._number() if head >> 4 == 15 else head >> 4), head & 15

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]
