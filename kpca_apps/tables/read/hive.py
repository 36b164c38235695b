"""Partitioned folders, as Hive and Spark write them: ``year=2024/month=1/``."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.names import one_line

HIDDEN = (".", "_")  # first characters of hidden files and folders
_NAME = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_UNREADABLE = re.compile(r"[\0\ud800-\udfff]")  # null characters, and bytes that are invalid UTF-8
_MISSING = "__HIVE_DEFAULT_PARTITION__"
# A number with leading zeros is an identifier, not a number.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def is_partition(name: str) -> bool:
    """Whether the name of a folder has the form ``column=value``.

    >>> is_partition("year=2024"), is_partition("2024")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def is_partitioned(folder: Path) -> bool:
    """Whether a folder contains partitions."""
    return any(is_partition(item.name) and item.is_dir() for item in unhidden(folder))


def unhidden(folder: Path) -> list[Path]:
    """Return the items of a folder that are not hidden, sorted by name."""
    try:
        return sorted(item for item in folder.iterdir() if not item.name.startswith(HIDDEN))
    except OSError as error:
        raise InputError(f"cannot be listed ({error.strerror}).", folder) from None


def partitioned_files(
    folder: Path, suffixes: Collection[str]
) -> list[tuple[Path, dict[str, str | None]]]:
    """Return the tables below a folder, each with the values of its partitions.

    Raises InputError if not all tables have the same partition columns.
    """
    found = list(_below(folder, {}, suffixes))
    if not found:
        raise InputError("this is a folder without tables; name a file, or a folder of them.")
    first, columns = found[0][0], list(found[0][1])
    for path, values in found:
        if list(values) != columns:
            names = ", ".join(map(one_line, values)) or "none"
            raise InputError(
                f"its folders are named after other columns ({names}) than those of "
                f"{one_line(str(first.relative_to(folder)), 200)}; name all after the same "
                "columns.",
                path,
            )
    return found


def folder_values(paths: Sequence[Path]) -> list[dict[str, str | None]]:
    """Return the partition values of each file, from the folders below the files' common folder.

    The list is empty if there are no partitions, or if the files have different partition columns.
    """
    top = Path(os.path.commonpath([path.parent for path in paths]))
    found = []
    for path in paths:
        values: dict[str, str | None] = {}
        for folder in path.parents[: len(path.parents) - len(top.parents) - 1]:
            if (named := _value_of(folder.name)) is None or named[0] in values:
                break
            values[named[0]] = named[1]
        found.append(dict(reversed(values.items())))
    is_alike = all(list(values) == list(found[0]) for values in found)
    return found if is_alike and found[0] else []


def _value_of(name: str) -> tuple[str, str | None] | None:
    if (named := _NAME.fullmatch(name)) is None or _UNREADABLE.search(unquote(name)):
        return None
    return unquote(named[1]), None if named[2] == _MISSING else unquote(named[2])


def _below(
    folder: Path, values: Mapping[str, str | None], suffixes: Collection[str]
) -> Iterator[tuple[Path, dict[str, str | None]]]:
    items = unhidden(folder)
    if any(item.suffix.lower() in suffixes and item.is_file() for item in items):
        refuse_folders_beside(folder, suffixes)
    for item in items:
        if item.is_dir():
            named = _value_of(item.name)
            if named is None and is_partition(item.name):
                raise InputError(
                    "its name holds characters that a column cannot hold; rename it.", item
                )
            if named is None or named[0] in values:
                raise InputError(
                    "is not named like the other folders of this table, such as year=2024; move "
                    "it elsewhere.",
                    item,
                )
            yield from _below(item, {**values, named[0]: named[1]}, suffixes)
        elif item.suffix.lower() in suffixes:
            yield item, dict(values)


def refuse_folders_beside(folder: Path, suffixes: Collection[str]) -> None:
    """Raise InputError if a folder of tables has a subfolder that is no table but may have rows."""
    for item in unhidden(folder):
        if item.is_dir() and item.suffix.lower() not in suffixes:
            raise InputError(
                f"is a folder beside the tables of {one_line(str(folder), 200)}; put all files "
                "into one folder, or this one elsewhere.",
                item,
            )


def frame_of_values(values: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    """Return the partition values of files, a row per file, as integers, dates or texts.

    >>> frame_of_values([{"year": "2024", "zone": "01"}, {"year": None, "zone": "02"}]).rows()
    [(2024, '01'), (None, '02')]
    """
    columns = []
    for name in values[0]:
        texts = [one[name] for one in values]
        given = [text for text in texts if text is not None]
        column = pl.Series(name, texts, pl.String)
        if given and all(map(_WHOLE.fullmatch, given)):
            column = column.cast(pl.Int64)
        elif given and all(map(_is_day, given)):
            column = column.str.to_date("%Y-%m-%d")
        columns.append(column)
    return pl.DataFrame(columns)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def with_values(frame: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Add the values of a file's partitions (a frame of one row) as columns to the file's rows."""
    return frame.with_columns(
        pl.lit(column[0], column.dtype).alias(column.name) for column in values.iter_columns()
    )
