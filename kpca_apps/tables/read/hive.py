"""Folders named after values of columns, as Hive and Spark write them: ``year=2024/month=1/``."""

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

HIDDEN = (".", "_")  # what names of hidden files and folders begin with
_NAME = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_UNREADABLE = re.compile(r"[\0\ud800-\udfff]")  # also what is no UTF-8
_MISSING = "__HIVE_DEFAULT_PARTITION__"
# As they are written back: an identifier with leading zeros is no number.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def is_partition(name: str) -> bool:
    """Whether the name of a folder is a column and a value.

    >>> is_partition("year=2024"), is_partition("2024")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds folders that are named after values."""
    return any(is_partition(item.name) and item.is_dir() for item in unhidden(folder))


def unhidden(folder: Path) -> list[Path]:
    """Return what a folder holds, by name, but for hidden items."""
    try:
        return sorted(item for item in folder.iterdir() if not item.name.startswith(HIDDEN))
    except OSError as error:
        raise InputError(f"cannot be listed ({error.strerror}).", folder) from None


def partitioned_files(
    folder: Path, suffixes: Collection[str]
) -> list[tuple[Path, dict[str, str | None]]]:
    """Return the tables below a folder by name, each with the values its folders are named after.

    All must lie under the same columns.
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
    """Return for each of several files the values that folders above it are named after.

    Only folders count that not all of them lie in; nothing is returned where there are none, or
    files lie under other columns: who names them one by one need not mean columns.
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
    """Return the column and the value that a folder is named after, if a column can hold both."""
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
    """Refuse folders beside the tables of a folder.

    Rows may be kept in them, by year or the like: to leave them out would be a loss.
    """
    for item in unhidden(folder):
        if item.is_dir() and item.suffix.lower() not in suffixes:
            raise InputError(
                f"is a folder beside the tables of {one_line(str(folder), 200)}; put all files "
                "into one folder, or this one elsewhere.",
                item,
            )


def frame_of_values(values: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    """Return the values of files (a row each): whole numbers and dates where all are, else texts.

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


def beside(frame: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Put the values (one row) of a file beside each of its rows."""
    return frame.with_columns(
        pl.lit(column[0], column.dtype).alias(column.name) for column in values.iter_columns()
    )
