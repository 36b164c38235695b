"""Where a table came from; light to import, for results carry it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

LeftOut = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
_LISTED = 5  # runs of lines that are named
REPEATED, DRAWN, TOTAL, FOOT = "repeated header", "drawn line", "total", "footer"
UNMATCHED, BLANK, REMARK = "unmatched total", "blank line", "remark"
COUNTED = (REPEATED, DRAWN, TOTAL, UNMATCHED, BLANK, REMARK)  # rows of their own; a foot is one


@dataclass(frozen=True)
class SourceInfo:
    """Where a table came from, and how it was read."""

    name: str  # of the file without its folder, or "standard input"
    # "csv", "parquet", "arrow", "jsonl", "json", "excel", "delta", "frame", or a kind of database
    format: str
    sha256: str  # of the bytes as they lay on disk, or of the cells of a stream; 64 hex digits
    n_bytes: int  # their number
    n_rows: int
    n_columns: int
    encoding: str | None = None  # of a text file
    delimiter: str | None = None  # of a text file
    notes: tuple[str, ...] = ()  # sentences a reader should know ("Read as cp1252: ...")
    file_column: str | None = None  # names the file each row comes from, where there are several
    reading: str = ""  # what else decided which cells were read: sheet, lines skipped
    version: str = ""  # of a table that has several, such as one of Delta
    key_columns: tuple[str, ...] = ()  # the primary key of a table of a database
    # Columns whose name in the header was empty, a pattern or a repetition: (column, that name).
    renamed: tuple[tuple[str, str], ...] = ()
    # Lines of a text or rows of a sheet that are no data: (what they are, of several files behind
    # the name of theirs; the first and last of each run of them).
    left_out: LeftOut = ()

    def left_out_text(self, title: str = "") -> str:
        """Name the lines of a text or rows of a sheet that are no data; empty if all are."""
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
        said = f"Left out as not data: {noun}{'s' * (n_all > 1)} {', '.join(parts)}"
        return said * bool(parts)

    @property
    def key_column(self) -> str | None:
        """The primary key of a table of a database, if it is one column."""
        return self.key_columns[0] if len(self.key_columns) == 1 else None

    @property
    def fingerprint(self) -> str:
        """Tells tables from each other: of the bytes, and of how they were read, 64 hex digits.

        The sheets of a workbook have the same bytes and hold other rows.
        """
        how = [self.sha256, self.format, self.encoding, self.delimiter, self.reading]
        return hashlib.sha256(json.dumps(how).encode()).hexdigest()
