"""How files are read, as the user asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from kpca_apps.errors import ConfigError, OptionError
from kpca_apps.names import one_line
from kpca_apps.options import READING

MOST_SKIPPED = 10_000  # lines above a header: its text is held until it is found
_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip


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
            raise OptionError(
                "skip_rows", f"must be a whole number from 0 to {MOST_SKIPPED:,}, got {given}"
            )
        if self.bad_lines not in ("refuse", "skip"):
            given = one_line(str(self.bad_lines), 30)
            raise OptionError("bad_lines", f"must be refuse or skip, got {given!r}")

    def refuse_others(self, applying: str, kind: str, label: str) -> None:
        """Refuse options that were given and are not among those `applying` to a kind of file."""
        for name in READING:
            is_given = getattr(self, name) != ReadOptions.__dataclass_fields__[name].default
            if is_given and name not in applying.split():
                raise OptionError(name, f"does not apply to {kind}; leave it out.", label)
