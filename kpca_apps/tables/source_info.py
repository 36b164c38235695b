"""The source of a table. The module imports fast, as modules of results import it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from kpca_apps.names import one_line

LeftOut = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
_LISTED = 5  # maximum number of runs of lines that a sentence lists
REPEATED, DRAWN, TOTAL, FOOT = "repeated header", "drawn line", "total", "footer"
UNMATCHED, BLANK, REMARK = "unmatched total", "blank line", "remark"
COUNTED = (REPEATED, DRAWN, TOTAL, UNMATCHED, BLANK, REMARK)


@dataclass(frozen=True)
class SourceInfo:
    """The source of a table, and how it was read."""

    name: str  # name of the file without its folder, or "standard input"
    # "csv", "parquet", "arrow", "jsonl", "json", "excel", "delta", "frame" or a kind of database
    format: str
    sha256: str  # hash of the bytes on disk, or of a stream's cells, in 64 hex digits
    n_bytes: int
    n_rows: int
    n_columns: int
    encoding: str | None = None  # encoding of a text file
    delimiter: str | None = None  # delimiter of a text file
    notes: tuple[str, ...] = ()  # sentences for users, such as "Read as cp1252: ..."
    file_column: str | None = None  # column that names each row's file, if there are several
    reading: str = ""  # other options that choose the cells to read: sheet, skipped lines
    version: str = ""  # version of a Delta table
    key_columns: tuple[str, ...] = ()  # primary key of a database table
    renamed: tuple[tuple[str, str], ...] = ()  # (column, its original name), see `unique_names`
    # Lines of a text or rows of a sheet that are not data: kind, and the first and last line of
    # each run. In a table of several files, a kind reads "FILE: KIND".
    left_out: LeftOut = ()

    @property
    def short_name(self) -> str:
        """The name as one line of escaped text, for messages."""
        return one_line(self.name)

    def left_out_text(self, title: str = "") -> str:
        """Return a sentence on the lines or rows that are not data; empty if there are none."""
        parts, n_all = [], 0
        for kind, runs in sorted(self.left_out, key=lambda item: item[1]):
            shown = [str(one) if one == end else f"{one}-{end}" for one, end in runs[:_LISTED]]
            n, n_more = (sum(1 + end - one for one, end in some) for some in (runs, runs[_LISTED:]))
            more = f" and {n_more:,} more in result.json" * (n_more > 0)
            many = f"{n:,} {kind}s" if n > 1 and kind in COUNTED else kind
            quote = f' "{title}"' if title and kind == "title" else ""
            parts.append(f"{', '.join(shown)}{more} ({many}{quote})")
            n_all += n
        noun = "row" if self.format == "excel" else "line"
        text = f"Left out as not data: {noun}{'s' * (n_all > 1)} {', '.join(parts)}"
        return text * bool(parts)

    @property
    def key_column(self) -> str | None:
        """The primary key of a database table, if it is one column."""
        return self.key_columns[0] if len(self.key_columns) == 1 else None

    @property
    def fingerprint(self) -> str:
        """Hash of the table's bytes and of the options by which it was read, in 64 hex digits.

        Two sheets of a workbook have the same bytes, but different rows.
        """
        how = [self.sha256, self.format, self.encoding, self.delimiter, self.reading]
        return hashlib.sha256(json.dumps(how).encode()).hexdigest()
