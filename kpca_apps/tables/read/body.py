"""Rows below the header that are no data: repeated headers, totals and the foot.

Only a table that ends with a total, or begins like blocks that are named once, is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, repeat

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from kpca_apps.names import one_line, quoted
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.read.head import HEADER_SAMPLE, Head, is_measure
from kpca_apps.tables.table import PartedTable, Rows, Table, as_arrow, collect, line_column
from kpca_apps.tables.values import Column, NumberFormat

_MOST_FOOT = 100  # rows at the end that are looked at
_LISTED = 5  # ranges of lines that are named
_LEAST_ROWS, _LEAST_SUMS = 2, 2  # that a total adds up, and of how many columns
_LEAST_BLOCKS = 3
_WORD = (
    "(?:(?:grand|sub|over-?all|general)?[ -]?totals?|(?:gesamt|zwischen|end)-?(?:summe|ergebnis)"
    "|sum|summe|gesamt|insgesamt|somme|sous-total|totale|totaal|suma|total g[e\u00e9]n[e\u00e9]ral)"
)
# Polars' regular expressions and Python's read it alike.
_TOTAL = rf"(?i)^[*\s]*{_WORD}(?:[\s:*].*)?$|\s{_WORD}[*:\s]*$"
_FOOT = re.compile(
    r"(?i)\W*(?:(?:page|seite|p[\u00e1a]gina)\W*\d|copyright\s|\u00a9|\(c\)\s|sources?:|quellen?:"
    r"|data from|last updated|(?:report )?(?:generated|printed|exported|created)\s"
    rf"|end of (?:report|file|table)|total records|\d+ rows?\W|{_WORD}\s*:)"
)
REPEATED, DRAWN, TOTAL, FOOT = "repeated header", "drawn line", "total", "footer"


def kind_of_end(cells: Sequence[str], *, is_below_line: bool) -> str:
    """Say what a row of another width is that ends the table, by its words; "" if none.

    The total of a list has a star, and a drawn line above it; in which columns its numbers belong,
    is not known.
    """
    words = [word for cell in cells if (word := cell.strip())]
    if is_below_line and words and words[0].startswith("*") and re.search(_TOTAL, words[0]):
        return TOTAL
    return FOOT if len(words) == 1 and _FOOT.match(words[0]) else ""


@dataclass
class Body:
    """What is no data in a file, and what its rows are without it."""

    noun: str = "line"  # of a text; "row" of a sheet
    left_out: dict[str, list[int]] = field(default_factory=dict)  # what it is -> its lines
    title: str = ""
    header: list[str] = field(default_factory=list)  # which may be repeated below

    def begin(
        self,
        head: Head,
        rows: Sequence[Sequence[str]],
        lines: Sequence[int],
        columns: Iterable[bool] = repeat(True),
    ) -> None:
        """Take note of the head: the first rows, their lines, and which cells are of columns."""
        if above := [cell for row in rows[: head.place] for cell in row if cell.strip()]:
            self.leave_out("title", range(lines[0], lines[head.place]))
            self.title = " ".join(above[0].split())
        for place, kind in head.below.items():
            self.leave_out(kind, [lines[place]])
        if head.are_words:
            self.header = [*map(str.strip, compress(rows[head.place], columns))]

    def leave_out(self, kind: str, lines: Iterable[int]) -> None:
        """Take note of lines that are no data, and of what they are."""
        if found := [*lines]:
            self.left_out.setdefault(kind, []).extend(found)

    def rows(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows without those of the header; the line of each is in the last column."""
        known = line_column(np.array(self._all(), np.int64))
        names = {k: name for k, name in enumerate(self.header) if name}
        for piece in pieces:
            if piece.num_rows:
                lines = piece.columns[-1]
                out = pc.is_in(lines, known)
                repeated = pc.invert(out)
                for k, name in names.items():
                    # Not by `pa.array` or `pc.equal`, which load pandas to ask whether the name
                    # is a series.
                    texts, named = piece.column(k), pl.Series([name]).to_arrow()
                    repeated = pc.and_(repeated, pc.is_in(texts.cast(named.type), named))
                    if not pc.any(repeated).as_py():
                        break
                if len(names) > 1:
                    self.leave_out(REPEATED, lines.filter(repeated).to_pylist())
                    out = pc.or_(out, repeated)
                piece = piece.filter(pc.invert(out)) if pc.any(out).as_py() else piece
            yield piece

    def _all(self) -> list[int]:
        return sorted(set().union(*self.left_out.values()))

    def settled(self, table: Table | PartedTable, in_memory_rows: float) -> Table | PartedTable:
        """Leave out totals and the foot, fill labels of blocks down, and say all that was done."""
        self._find_end(table)
        notes, n_cells = self._sentence(), self._blocks(table)
        if n_cells:
            notes += (
                f"Labels that stand once a block are filled down in {quoted(table.columns[0])}, "
                f"into {n_cells:,} empty cells; --layout off leaves them empty.",
            )
        source = replace(table.source, notes=(*notes, *table.source.notes))
        if not n_cells and not self.left_out.keys() & {TOTAL, FOOT}:
            if isinstance(table, Table):
                return replace(table, source=source)
            parts = tuple(replace(part, source=source) for part in table.parts)
            return replace(table, source=source, parts=parts)

        def pieces() -> Iterator[pa.Table]:
            last = None
            for frame, lines in self._kept(table):
                if n_cells and frame.height:
                    labels = _texts(frame[:, 0])
                    labels[0] = labels[0] or last
                    last = (labels := labels.forward_fill())[-1]
                    frame = frame.with_columns(labels)
                yield as_arrow(frame, lines)

        size = table.parts[0].stop if isinstance(table, PartedTable) else None
        rows = Rows(pieces(), [*table.columns], [], True)
        return collect(rows, source, lambda: source.sha256, in_memory_rows, size)

    def _sentence(self) -> tuple[str, ...]:
        """Say what was left out, in one sentence if anything was."""
        parts = []
        for kind, lines in sorted(self.left_out.items(), key=lambda item: min(item[1])):
            many = f"{len(lines):,} {kind}s" if kind in (REPEATED, TOTAL, DRAWN) else kind
            quote = f' "{one_line(self.title, 60)}"' if kind == "title" else ""
            more = f" and {len(lines) - _LISTED:,} more" if len(lines) > _LISTED else ""
            shown = ", ".join(map(str, lines[:_LISTED])) + more
            if len(lines) > 1 and lines[-1] - lines[0] == len(lines) - 1:
                shown = f"{lines[0]}-{lines[-1]}"
            parts.append(f"{shown} ({many if len(lines) > 1 else kind}{quote})")
        noun = self.noun + "s" * (len(self._all()) > 1)
        said = f"Left out as no data: {noun} {', '.join(parts)}; --layout off reads them as data."
        return (said,) * bool(parts)

    def _kept(self, table: Table | PartedTable) -> Iterator[tuple[pl.DataFrame, IntArray]]:
        """Yield the rows that are not left out, and their lines, a part at a time."""
        out = np.array(self._all(), np.int64)
        for part in table.tables():
            assert part.lines is not None
            keep = ~np.isin(part.lines, out)
            yield part.frame.filter(keep), part.lines[keep]

    def _find_end(self, table: Table | PartedTable) -> None:
        """Find the foot and the totals, for which the whole table is read if it ends with one.

        A foot has nothing but its words, in a first column that else holds numbers or dates.
        """
        parts = [table] if isinstance(table, Table) else [one.read() for one in table.parts[-2:]]
        ends = [(part.frame[-_MOST_FOOT:], part.lines) for part in parts if part.lines is not None]
        lines = [line for frame, of in ends for line in of[-frame.height :].tolist()]
        cells = [row for frame, _ in ends for row in frame.rows()]
        rows = [["" if c is None else str(c).strip() for c in row] for row in cells]
        end = len(rows)
        while end and _FOOT.match(rows[end - 1][0]) and not any(rows[end - 1][1:]):
            end -= 1
        above = [row[0] for row in rows[:end] if row[0]]
        if not (len(rows[0]) > 1 and len(above) > 2 and all(map(is_measure, above))):
            end = len(rows)
        self.leave_out(FOOT, lines[end:])
        if any(re.search(_TOTAL, next(filter(None, row), "")) for row in rows[:end]):
            self._find_totals(table, lines[end - 1])

    def _find_totals(self, table: Table | PartedTable, last_line: int) -> None:
        """Find the rows that are totals, by their labels and what they add up, from top or total.

        One alone ends the table: a customer may be called so. Nothing but a label may end it below
        other totals.
        """
        formats: dict[int, NumberFormat] = {}
        for k, cells in enumerate(next(self._kept(table))[0][:HEADER_SAMPLE].iter_columns()):
            format = None if cells.dtype.is_temporal() else Column(cells).inferred_format()
            if isinstance(format, NumberFormat):
                formats[k] = format
        found: list[int] = []
        # Rows to add up, and sums of their numbers: from the top, and from the total before.
        whole, block = np.zeros((2, 1 + len(formats)))
        for frame, lines in self._kept(table) if len(formats) >= _LEAST_SUMS else ():
            values = [Column(frame[:, k]).read(format).values for k, format in formats.items()]
            given = np.column_stack(values)
            texts = [*map(_texts, frame.iter_columns())]
            n_filled = sum(column.is_not_null().to_numpy().astype(int) for column in texts)
            labels = frame.select(pl.coalesce(*texts)).to_series().str.contains(_TOTAL)
            is_bare = n_filled - np.isfinite(given).sum(axis=1) == 1
            counted = np.column_stack([np.ones(len(given)), np.nan_to_num(given)])
            start = 0
            for place in np.flatnonzero(labels.fill_null(False).to_numpy() & is_bare).tolist():
                added = counted[start:place].sum(axis=0)
                whole, block, start = whole + added, block + added, place
                row, line = [str(frame[place, k]) for k in formats], int(lines[place])
                is_end = line == last_line and len(found) > 1 and not block[0]
                is_end = is_end and not np.isfinite(given[place]).any()
                if is_end or any(_adds_up(given[place], row, sums) for sums in (whole, block)):
                    found.append(line)
                    block, start = np.zeros_like(block), place + 1
            added = counted[start:].sum(axis=0)
            whole, block = whole + added, block + added
        if len(found) > 1 or found == [last_line]:
            self.leave_out(TOTAL, found)

    def _blocks(self, table: Table | PartedTable) -> int:
        """Count the empty cells of a first column whose labels stand once a block; 0 if none do.

        All other columns are full, the second never repeats within a block, and most of what it
        holds occurs in several: months of each region.
        """
        first, kept = next(self._kept(table))[0][:HEADER_SAMPLE], []
        if first.width < 3 or 2 * _texts(first[:, 0]).null_count() < first.height:
            return 0
        for frame, _ in self._kept(table):
            labels, *others = map(_texts, frame.iter_columns())
            if any(column.null_count() for column in others):
                return 0
            kept.append(pl.DataFrame({"label": labels, "key": others[0]}))
        rows = pl.concat(kept)
        starts, known = rows["label"].is_not_null(), rows["label"].drop_nulls()
        # Blocks of one row would make labels of what merely is sparse.
        is_plain = starts[0] and not starts[-1] and not (starts & starts.shift(1)).any()
        is_plain = is_plain and len(known) >= _LEAST_BLOCKS and not known.is_duplicated().any()
        is_plain = is_plain and not any(map(is_measure, known))
        is_plain = is_plain and not rows.select(pl.all().forward_fill()).is_duplicated().any()
        return rows["label"].null_count() * (is_plain and 2 * rows["key"].n_unique() <= len(rows))


def _texts(cells: pl.Series) -> pl.Series:
    """Cells as text without blanks around, null where empty."""
    texts = cells.cast(pl.String).str.strip_chars()
    return texts.set(texts == "", None)


def _adds_up(given: FloatArray, cells: Sequence[str], sums: FloatArray) -> bool:
    """Whether all numbers of a row, several, are `sums` to rounding; how many rows stands first."""
    decimals = (re.search(r"[.,](\d+)\D*$", cell) for cell in cells)
    units = np.array([10.0 ** -len(one[1]) if one else 1.0 for one in decimals])
    is_sum = np.abs(given - sums[1:]) <= 0.5 * units + 1e-9 * np.abs(sums[1:])
    n_sums = (is_sum & (sums[1:] != 0)).sum()
    are_all = is_sum[~np.isnan(given)].all()
    return bool(sums[0] >= _LEAST_ROWS and n_sums >= _LEAST_SUMS and are_all)
