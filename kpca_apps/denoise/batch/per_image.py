"""Read the settings of single images of a batch from a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import one_line, suggest
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.values import Column, NumberFormat
from kpca_apps.tables.write import as_written

FILE, NOTE, SIGMA = "file", "note", "sigma"
WORDS = ("noise", "quality")  # columns of text; the others hold numbers
COLUMNS = ("strength", "luma", "chroma", SIGMA, *WORDS)


def read_per_image(
    path: str | Path, names: Collection[str], denoiser: GroupDenoiser
) -> dict[str, Mapping[str, Any]]:
    """Return settings by image from a table, without its notes; errors name row and column."""
    table, label = read_table(path), one_line(str(path), 200)
    columns = {name: table.column[name] for name in table.frame.columns}
    for name in columns:
        if name not in (FILE, *COLUMNS, NOTE):
            known = (FILE, *COLUMNS, NOTE)
            raise InputError(
                f'{label}: the column "{one_line(name)}" is not one of {", ".join(known)}; '
                f"rename it or remove it.{suggest(name, known)}"
            )
    if FILE not in columns:
        raise InputError(f'{label}: has no column "{FILE}"; name the image of each row in it.')
    files, comma = columns.pop(FILE).texts, table.source.delimiter == ";"
    columns.pop(NOTE, None)
    cells: dict[str, list[float | str | None]] = {}
    for name, column in columns.items():
        texts = Column(column.texts)
        numbers = texts.read(texts.number_format(comma) or NumberFormat())
        parts = zip(texts.cells, numbers.values.tolist(), numbers.unreadable.tolist(), strict=True)
        # Convert numbers to floats, and empty cells to None; keep other cells as text.
        cells[name] = [text if text is None or unread else value for text, value, unread in parts]
    rows: dict[str, int] = {}
    found: dict[str, Mapping[str, Any]] = {}
    for row, (name, bare) in enumerate(zip(files, as_written(files), strict=True)):
        if name not in names and bare in names:
            name = bare  # without the escape that keeps spreadsheets from running a formula
        where, own = f"{label}: {table.place_of(row)}, column", {}
        if name is None:
            raise InputError(f'{where} "{FILE}": is empty; name an image, or take the row out.')
        if name in found:
            raise InputError(
                f'{where} "{FILE}": "{one_line(name)}" stands in row {rows[name]} already; take '
                "one of them out."
            )
        if name not in names:
            raise InputError(
                f'{where} "{FILE}": the batch has no image "{one_line(name)}"; give its name as '
                f"--dry-run lists it, or take the row out.{suggest(name, names)}"
            )
        for head, values in cells.items():
            if (value := values[row]) is None:
                continue
            own[head] = None if head == SIGMA and str(value).lower() == "auto" else value
            try:
                _check(head, own[head])
                denoiser.changed(own)
            except ConfigError as error:
                raise InputError(f'{where} "{head}": {error}, or leave the cell empty.') from None
        rows[name], found[name] = row + 1, own
    return found


def _check(column: str, value: Any) -> None:
    if column not in WORDS and isinstance(value, str):
        raise ConfigError(f'{column} is "{one_line(value, 40)}"; give a number')
    if column == SIGMA and value is not None and value < 0:
        raise ConfigError(f"{column} is {value:g}; give a number of 0 or more, or auto")
