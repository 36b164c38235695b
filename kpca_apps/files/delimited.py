"""Delimited text -> columns of strings, with the line each row starts on.

What cuts the cells is sniffed, and the first row names the columns, or is data.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.cutting import CutRows, cut_message, cut_rows
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.sniffing import (
    DELIMITER_NAMES,
    ONE_COLUMN,
    header_is_missing,
    is_number,
    sniff_delimiter,
)

__all__ = [
    "HEAD_BYTES",
    "CutText",
    "Cutter",
    "Header",
    "choose_cutter",
    "collapse_spaces",
    "no_data",
    "read_delimited",
    "read_header",
    "refuse_useless",
]

HEAD_BYTES = 1 << 20
"""Bytes at the head of a text that suffice to choose what cuts it."""

_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')


@dataclass(frozen=True)
class CutText:
    """A text table cut into cells.

    Attributes
    ----------
    frame : DataFrame
        String columns, cells exactly as in the file.
    lines : (n,) int array
        1-based line each row starts on.
    delimiter : str or None
        What cut the cells; ``None`` for a table of one column.
    notes : tuple of str
        Sentences that state what was guessed.
    """

    frame: pl.DataFrame
    lines: NDArray[np.int64]
    delimiter: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cutter:
    """What cuts the cells of a text, and where its rows begin.

    Attributes
    ----------
    delimiter : str
        One character; a space means runs of spaces.
    skip : int
        Bytes before the rows: Excel's line ``sep=;``, without the newline that ends it.
    notes : tuple of str
        A sentence where it was found by looking.
    """

    delimiter: str
    skip: int
    notes: tuple[str, ...]

    @property
    def stated(self) -> str | None:
        """The delimiter as a source states it: ``None`` for a table of one column."""
        return None if self.delimiter == ONE_COLUMN else self.delimiter


@dataclass(frozen=True)
class Header:
    """What the first row of a text says.

    Attributes
    ----------
    names : tuple of str
        Of the columns: distinct, and none empty.
    is_data : bool
        Whether the row holds data, and the names are made up.
    line : int
        Line it starts on.
    notes : tuple of str
        Sentences that state what was guessed.
    """

    names: tuple[str, ...]
    is_data: bool
    line: int
    notes: tuple[str, ...]


def read_delimited(text: bytes, label: str, delimiter: str | None = None) -> CutText:
    r"""Cut a text table into columns of strings.

    Parameters
    ----------
    text : bytes
        The table in UTF-8.
    label : str
        The file's name for messages.
    delimiter : str, optional
        One character; sniffed by default. A space means runs of spaces.

    Returns
    -------
    CutText
        The cells, and how they were cut.

    Raises
    ------
    InputError
        If rows differ in their number of cells, a quote stays open, or there is no row of data.

    Examples
    --------
    >>> cut = read_delimited(b"name;size\n\nada;1,5\n", "people.csv")
    >>> cut.frame.columns, cut.frame.row(0), cut.lines.tolist()
    (['name', 'size'], ('ada', '1,5'), [3])
    """
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    cutter = choose_cutter(text, delimiter)
    text = text[cutter.skip :]
    if delimiter is not None and delimiter.encode("utf-8") not in text:
        refuse_useless(text, delimiter, label)
    if cutter.delimiter == " ":
        text = collapse_spaces(text)
    rows = cut_rows(text, cutter.delimiter, label)
    header = read_header(rows, label)
    first = 0 if header.is_data else 1
    frame, lines = rows.frame[first:], rows.lines[first:]
    if frame.height == 0:
        raise no_data(header, label)
    frame.columns = list(header.names)
    return CutText(frame, lines, cutter.stated, (*cutter.notes, *header.notes))


def choose_cutter(text: bytes, delimiter: str | None = None) -> Cutter:
    r"""Choose what cuts a text: what is given, what its first line states, or what is found.

    Parameters
    ----------
    text : bytes
        The text in UTF-8, or its first `HEAD_BYTES`.
    delimiter : str, optional
        One character.

    Returns
    -------
    Cutter
        The delimiter, and where the rows begin.

    Examples
    --------
    >>> choose_cutter(b"sep=;\na;b\n1;2\n")
    Cutter(delimiter=';', skip=5, notes=())
    """
    match = _SEPARATOR_LINE.match(text)
    skip = match.end() if match else 0
    if delimiter is not None or match:
        return Cutter(delimiter or match[1].decode("utf-8"), skip, ())  # type: ignore[index]
    found = sniff_delimiter(text)
    if found in (",", ONE_COLUMN):
        return Cutter(found, skip, ())
    return Cutter(
        found, skip, (f"Cells are cut at the {DELIMITER_NAMES[found]} (found by itself).",)
    )


def collapse_spaces(text: bytes) -> bytes:
    r"""Make one space of each run of spaces, and none of those that begin or end a line.

    Examples
    --------
    >>> collapse_spaces(b"  1   2 \n")
    b'1 2\n'
    """
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))


def refuse_useless(text: bytes, delimiter: str, label: str) -> None:
    """Refuse a given delimiter that never occurs where another would cut the rows.

    Parameters
    ----------
    text : bytes
        A text without the delimiter, or its first `HEAD_BYTES`.
    delimiter : str
        As given.
    label : str
        The file's name for messages.

    Raises
    ------
    InputError
        Naming both.
    """
    found = sniff_delimiter(text)
    if found != ONE_COLUMN:
        name = DELIMITER_NAMES.get(delimiter, f'delimiter "{one_line(delimiter)}"')
        raise InputError(
            f"{label}: the {name} given as --delimiter does not occur in the file; its rows look "
            f"cut at the {DELIMITER_NAMES[found]}: leave the option out."
        )


def read_header(rows: CutRows, label: str) -> Header:
    """Take the first row for names, or for data where it holds nothing but numbers.

    Parameters
    ----------
    rows : CutRows
        At least the first row.
    label : str
        The file's name for messages.

    Returns
    -------
    Header
        The names of the columns.

    Raises
    ------
    InputError
        If the row is blank, or a cell of it too long for a name.
    """
    first, line = [str(cell) for cell in rows.frame.row(0)], int(rows.lines[0])
    if max(map(len, first)) > csv.field_size_limit():
        raise InputError(cut_message("field larger than", label, line))
    if header_is_missing(first):
        note = f"Line {line} holds numbers only: the columns are named column_1, ..."
        return Header(tuple(rows.frame.columns), True, line, (note,))
    if not any(name.strip() for name in first):
        raise InputError(
            f"{label}: line {line} should name the columns and is blank; add a header."
        )
    names, notes = unique_names(first)
    numbers = [name for name in first if is_number(name)]
    if 2 * len(numbers) >= len(first):
        notes.append(
            f'The names on line {line} look like values ("{one_line(numbers[0])}"): if '
            "they are data, add a header line."
        )
    return Header(tuple(names), False, line, tuple(notes))


def no_data(header: Header, label: str) -> InputError:
    """Return the error for a text with a header and nothing below it."""
    return InputError(
        f"{label}: line {header.line} is a header without rows; there is nothing to screen."
    )
