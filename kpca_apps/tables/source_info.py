"""How a table is to be read, and where it came from; light to import, for results carry it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from math import inf

from kpca_apps.errors import ConfigError
from kpca_apps.names import one_line

__all__ = ["ReadOptions", "SourceInfo"]

MOST_SKIPPED = 10_000  # lines above a header: its text is held until it is found
_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip


@dataclass(frozen=True)
class SourceInfo:
    """Where a table came from, and how it was read."""

    name: str  # of the file without its folder, or "standard input"
    format: str  # "csv", "parquet", "arrow", "jsonl", "json", "excel", or "frame"
    sha256: str  # of the bytes as they lay on disk, 64 hex digits
    n_bytes: int  # their number
    n_rows: int
    n_columns: int
    encoding: str | None = None  # of a text file
    delimiter: str | None = None  # of a text file
    notes: tuple[str, ...] = ()  # sentences a reader should know ("Read as cp1252: ...")
    file_column: str | None = None  # names the file each row comes from, where there are several
    reading: str = ""  # what else decided which cells were read: sheet, lines skipped

    @property
    def fingerprint(self) -> str:
        """Tells tables from each other: of the bytes, and of how they were read, 64 hex digits.

        The sheets of a workbook have the same bytes and hold other rows.
        """
        how = [self.sha256, self.format, self.encoding, self.delimiter, self.reading]
        return hashlib.sha256(json.dumps(how).encode()).hexdigest()


@dataclass(frozen=True)
class ReadOptions:
    """How files are read; what is left open is found by itself."""

    delimiter: str | None = None  # its name becomes the character
    encoding: str | None = None
    sheet: str | int | None = None  # of a workbook: its name, or its number from 1
    skip_rows: int = 0  # lines above the header of a text or a sheet
    bad_lines: str = "refuse"  # or "skip"
    in_memory_rows: float = inf  # up to so many, a table is read at once
    part_rows: int | None = None  # of a part; by default as many as suit the number of columns

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            character = _NAMED_DELIMITERS.get(self.delimiter.lower(), self.delimiter)
            is_half = "\ud800" <= character[:1] <= "\udfff"
            if len(character) != 1 or character in '\0"\r\n' or character.isalnum() or is_half:
                raise ConfigError(
                    f'The delimiter "{one_line(self.delimiter)}" is not one character that can cut '
                    'cells; give one such as ";", or "tab".'
                )
            object.__setattr__(self, "delimiter", character)
        if self.skip_rows not in range(MOST_SKIPPED + 1):
            given = one_line(str(self.skip_rows), 30)
            raise ConfigError(
                f"--skip-rows must be a whole number from 0 to {MOST_SKIPPED:,}, got {given}"
            )
        if self.bad_lines not in ("refuse", "skip"):
            given = one_line(str(self.bad_lines), 30)
            raise ConfigError(f"--bad-lines must be refuse or skip, got {given!r}")

    def refuse_others(self, applying: str, kind: str, label: str) -> None:
        """Refuse options that were given and are not among those `applying` to a kind of file."""
        for name in ("delimiter", "encoding", "sheet", "skip_rows", "bad_lines"):
            is_given = getattr(self, name) != ReadOptions.__dataclass_fields__[name].default
            if is_given and name not in applying.split():
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{label}: {flag} does not apply to {kind}; leave it out.")
