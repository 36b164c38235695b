"""Find rows below the header that are not data: blank or repeated rows, remarks, totals, footers.

A table is read again only if it ends with a total, or may have remarks or labels given once per
block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, repeat

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from kpca_apps.errors import InputError
from kpca_apps.names import one_line, quoted
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.limits import require_memory
from kpca_apps.tables.read.layout.header import (
    HEADER_SAMPLE,
    Head,
    is_measure,
    is_sparse,
    measured_columns,
)
from kpca_apps.tables.read.text import BadLines
from kpca_apps.tables.source_info import BLANK, FOOT, REMARK, REPEATED, TOTAL, UNMATCHED
from kpca_apps.tables.table import PartedTable, Rows, Table, as_arrow, as_polars, collect
from kpca_apps.tables.values import READS_AS, Column, NumberFormat, shapes_of

_MOST_FOOT = 100  # maximum number of rows of a footer
_LEAST_ROWS = 2  # minimum number of rows that a total of several columns sums up
# Minimum number of labels that stand only in the first of several rows (a region, with its months
# below); minimum number of rows above a footer or total.
_LEAST_BLOCKS, _LEAST_ABOVE = 3, 3
_SUM = "(?:gesamt|zwischen|end)-?(?:summe|ergebnis|saldo)|closing balance"
_WORD = (
    rf"(?:(?:grand|sub|over-?all|general)?[ -]?totals?|{_SUM}"
    "|sum|summe|gesamt|insgesamt|somme|sous-total|totale|totaal|suma|total g[e\u00e9]n[e\u00e9]ral)"
)
# A total's label, as a regular expression that both polars and Python accept.
_TOTAL = rf"(?i)^[*\s]*{_WORD}(?:[\s:*].*)?$|\s{_WORD}[*:\s]*$|^[*]+$"
_FOOT = re.compile(
    r"(?i)\W*(?:(?:page|seite|p[\u00e1a]gina)\W*\d|copyright\s|\u00a9|\(c\)\s|sources? ?:|quellen?:"
    r"|fuentes?:|fontes?:|bron:|data from|last updated|end of (?:report|file|table)|total records"
    r"|(?:report )?(?:generated|printed|exported|created)\s|\d+ rows?\W"
    r"|(?:(?:grand|sub|over-?all|general)[ -]?|sous-)totals?\W*$"
    rf"|(?:{_SUM})\W*$|{_WORD}\s*:)"
)
# A remark has two words, or a letter and its meaning ("p: revised"), or a word and several numbers
# ("Seite 1 von 3").
_WORDS, _NUMBERS = (
    r"\pL{2}.*[^\pL\pN]\pL{2}|^[^\pL\pN]*\pL[ )\]]*[:=)\]].*\pL{3}",
    r"^\pL{2,}[^\pL\pN]*\s.*\d.*\D\d",
)
_FIRST_WORD = r"^\P{L}*(\pL+)"
_MOST_REMARKS = 10_000  # maximum number of possible remarks, to bound memory
# Maximum number of lines with the same remark; maximum number of the first page ("Page 1 of 3").
_MOST_ALIKE, _FIRST_PAGES = 3, 2
_RUN_BYTES = 300  # bytes of memory for each run of lines that are not data (measured on 1e6 runs)


def is_list_total(cells: Sequence[str]) -> bool:
    """Whether the first filled cell labels a total with stars, such as "* Total" or "**"."""
    first = next((word for cell in cells if (word := cell.strip())), "")
    return first.startswith("*") and re.search(_TOTAL, first) is not None


@dataclass
class Body:
    """Collects the lines of a file that are not data, and removes them from the rows."""

    # kind -> [first line, last line, first line, last line, ...] of its runs of lines
    left_out: dict[str, list[int]] = field(default_factory=dict)
    title: str = ""
    header: list[str] = field(default_factory=list)  # names of the columns
    first: pa.Table | None = None  # first rows of data; `last` contains the last rows
    last: pa.Table | None = None
    n_bare: int = 0  # number of rows of full width in which only the first cell is filled
    remarks: dict[int, str] = field(default_factory=dict)  # line -> text of a possible remark there
    # number of a line with too few cells -> its fault, reported if the line proves to be data
    short: dict[int, str] = field(default_factory=dict)
    bad: BadLines | None = None  # collects lines with a fault; None if a fault raises an error

    def begin(
        self,
        head: Head,
        rows: Sequence[Sequence[str]],
        lines: Sequence[int],
        columns: Iterable[bool] = repeat(True),
    ) -> None:
        """Record the title, the names (masked by `columns`), and rows between names and data."""
        if above := [cell for row in rows[: head.place] for cell in row if cell]:
            self.leave_out("title", range(lines[0], lines[head.place]))
            self.title = " ".join(above[0].split())
        for place, kind in head.below.items():
            self.leave_out(kind, [lines[place]])
        if head.are_words:
            self.header = [*compress(rows[head.place], columns)]

    def leave_out(self, kind: str, lines: Iterable[int]) -> None:
        """Record lines that are not data, in increasing order, under their `kind`."""
        found = np.fromiter(lines, np.int64)
        if not found.size:
            return
        runs, ends = self.left_out.setdefault(kind, []), np.flatnonzero(np.diff(found) != 1)
        new = found[np.column_stack((np.append(0, ends + 1), np.append(ends, -1)))].ravel().tolist()
        if runs and runs[-1] == new[0] - 1:
            del runs[-1], new[0]
        runs += new
        require_memory(_RUN_BYTES * len(runs) // 2, copies=1)

    def accept_short(self, cells: list[str], width: int, line: int, fault: str) -> bool:
        """Pad a short row that may not be data; if it is data after all, report `fault` later."""
        stripped = [cell.strip() for cell in cells]
        is_few = is_sparse(stripped, width) or re.search(_TOTAL, next(filter(None, stripped), ""))
        if not is_few or any(cells[width:]) or width < 2:
            return False
        if len(self.short) >= _MOST_REMARKS:
            if self.bad is None:
                self.refuse_short()
            return False
        cells[:] = [*cells, *[""] * width][:width]
        self.short[line] = fault
        return True

    def refuse_short(self) -> list[int]:
        """Return lines of data with too few cells; raise InputError if bad lines are errors."""
        lines = np.array([*self.short], np.int64)
        refused: list[int] = lines[~_are_in(lines, self._runs())].tolist()
        for line in refused:
            if self.bad is None:
                raise InputError(f"line {line} {self.short[line]}")
            self.bad.leave_out(line, self.short[line].partition(";")[0])
        return refused

    def rows(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows without blank rows and repeated headers; the last column is the line."""
        end_of_head = self._runs().max(initial=0)
        names = {k: name for k, name in enumerate(self.header) if name}
        for piece in pieces:
            if piece.num_rows:
                if piece.columns[-1][0].as_py() <= end_of_head:
                    is_out = _are_in(piece.columns[-1].to_numpy(), self._runs())
                    piece = piece.filter(pl.Series(~is_out).to_arrow())
                holds = (_holds(piece.column(k), name) for k, name in names.items())
                if len(names) > 1 and (repeated := _all_of(holds)) is not None:
                    piece = self._without(REPEATED, piece, repeated)
                piece = self._without_blank(piece)
                # Name columns by number: a column "line" would clash with that of line numbers.
                rows = piece.rename_columns([*map(str, range(piece.num_columns))])
                self.first = self.first or rows.slice(0, HEADER_SAMPLE)
                rows = pa.concat_tables([*[self.last] * (self.last is not None), rows])
                self.last = rows.slice(max(len(rows) - _MOST_FOOT, 0))
            yield piece

    def _without(self, kind: str, piece: pa.Table, is_out: pa.ChunkedArray) -> pa.Table:
        self.leave_out(kind, piece.columns[-1].filter(is_out).to_numpy())
        return piece.filter(pc.invert(is_out))

    def _without_blank(self, piece: pa.Table) -> pa.Table:
        """Remove blank rows, and record rows in which only the first cell is filled."""
        first, *others, lines = piece.columns
        if (is_bare := _all_of(map(_is_blank, others))) is None:
            return piece
        if (is_blank := _all_of([is_bare, _is_blank(first)])) is not None:
            is_bare = pc.and_not(is_bare, is_blank)
        bare = as_polars(pa.table({"text": first.filter(is_bare), "line": lines.filter(is_bare)}))
        self.n_bare += bare.filter(~pl.col("line").is_in([*self.short])).height
        if bare["text"].dtype == pl.String and len(self.remarks) <= _MOST_REMARKS:
            may_be = pl.col("text").str.contains(f"{_WORDS}|{_NUMBERS}|(?i){_FOOT.pattern[4:]}")
            found = bare.filter(may_be).select("line", pl.col("text").str.strip_chars())
            self.remarks |= dict(found.iter_rows())
        return piece if is_blank is None else self._without(BLANK, piece, is_blank)

    def _runs(self) -> IntArray:
        """Return the first and last line (r, 2) of each run that is not data, in order."""
        runs = np.array([*chain(*self.left_out.values())], np.int64).reshape(-1, 2)
        return runs[runs[:, 0].argsort()]

    def finish(self, table: Table | PartedTable, in_memory_rows: float) -> Table | PartedTable:
        """Remove totals and footers, fill empty cells with the label above them, and add notes."""
        if self.last is not None:
            self._find_remarks(table, as_polars(self.last))
        refused, n_cells = self.refuse_short(), self._blocks(table)
        left_out = tuple(
            (kind, tuple(sorted(zip(runs[::2], runs[1::2], strict=True))))
            for kind, runs in self.left_out.items()
        )
        source = replace(table.source, left_out=left_out)
        text = f"{source.left_out_text(one_line(self.title, 60))}; --layout off reads them as data."
        notes: tuple[str, ...] = (text,) * bool(left_out)
        if n_cells:
            notes += (
                f"Labels given once per block are filled down in {quoted(table.columns[0])}, into "
                f"{n_cells:,} empty cells; --layout off leaves them empty.",
            )
        if self.bad is not None:
            notes += (*self.bad.notes(source.n_rows - len(self.short)),)
        source = replace(source, notes=(*notes, *source.notes))
        changed = {TOTAL, UNMATCHED, FOOT, REMARK}
        if not (n_cells or refused or self.left_out.keys() & changed):
            if isinstance(table, Table):
                return replace(table, source=source)
            parts = tuple(replace(part, source=source) for part in table.parts)
            return replace(table, source=source, parts=parts)

        def pieces() -> Iterator[pa.Table]:
            last = None
            for frame, lines in self._remaining_rows(table, refused):
                if n_cells and frame.height:
                    labels = _texts(frame[:, 0])
                    labels[0] = labels[0] or last
                    last = (labels := labels.forward_fill())[-1]
                    frame = frame.with_columns(labels)
                yield as_arrow(frame, lines)

        size = table.parts[0].stop if isinstance(table, PartedTable) else None
        rows = Rows(pieces(), [*table.columns], [], True)
        return collect(rows, source, lambda: source.sha256, in_memory_rows, size)

    def _remaining_rows(
        self, table: Table | PartedTable, refused: Sequence[int] = ()
    ) -> Iterator[tuple[pl.DataFrame, IntArray]]:
        runs = self._runs()
        for part in table.tables():
            assert part.lines is not None
            keep = ~(_are_in(part.lines, runs) | np.isin(part.lines, refused))
            yield part.frame.filter(keep), part.lines[keep]

    def _find_remarks(self, table: Table | PartedTable, end_rows: pl.DataFrame) -> None:
        """Find the footer, remarks and totals.

        A footer follows a blank line, or begins with known words and has too few cells in all rows.
        It has few filled cells, no number in a numeric column, and a known remark. A row in which
        only the first cell is filled is a remark if it resembles no other cell of the column.
        """
        lines = end_rows[:, -1].to_list()
        rows = [
            ["" if c is None else str(c).strip() for c in row] for row in end_rows[:, :-1].rows()
        ]
        measured, width = measured_columns(rows), len(rows[0]) if rows else 0
        start = end = len(rows)
        while start and is_sparse(row := rows[start - 1], width):
            if any(is_measure(row[k]) for k in measured):
                break
            start -= 1
        # Line breaks inside cells are not blank lines.
        breaks = [
            sum(str(c).count("\n") for c in row) * (table.source.format == "csv")
            for row in end_rows[:, :-1].rows()
        ]
        firsts = [next(filter(None, row), "") for row in rows]
        begins = (
            k
            for k in range(max(start, 1), end)
            if lines[k] - breaks[k - 1] > lines[k - 1] + 1
            or (_FOOT.match(firsts[k]) and self.short.keys() >= {*lines[k:]})
        )
        end = next(begins, end)
        n_bare = self.n_bare - sum(
            bool(row[0]) and not any(row[1:]) and line not in self.short
            for line, row in zip(lines[end:], rows[end:], strict=True)
        )
        known = {line for line, text in self.remarks.items() if _FOOT.match(text)}
        if n_bare > len(known.difference(self.short, lines[end:])):
            known &= self.short.keys()
        found = set[int]()
        if 0 < len(self.remarks) <= _MOST_REMARKS:
            found = self._find_unusual(table, known)
        if found & known & {*lines[end:]}:
            found |= {*lines[end:]}
        kept = [k for k, line in enumerate(lines) if line not in found]
        last_line = lines[kept[-1]] if kept else 0
        for line in sorted(found):
            self.leave_out(FOOT if line > last_line else REMARK, [line])
        if any(re.search(_TOTAL, firsts[k]) for k in kept):
            self._find_totals(table, last_line)

    def _find_unusual(self, table: Table | PartedTable, known: set[int]) -> set[int]:
        """Return the lines of possible `remarks` that resemble no other cell of the first column.

        In a column of codes, numbers or dates, a remark contains several words, or a word and
        numbers. In a column of words, a remark is a `known` line, or contains numbers that the
        other cells lack. A line with too few cells is data if it may continue the row above it.
        """
        texts = pl.Series(self.remarks.values(), dtype=pl.String)
        starts, forms = texts.str.extract(_FIRST_WORD), shapes_of(texts)
        is_short = pl.Series([line in self.short for line in self.remarks])
        is_known = pl.Series([line in known for line in self.remarks])
        is_data = pl.repeat(False, len(texts), eager=True)
        n = n_numbered = n_worded = 0
        for frame, of_rows in self._remaining_rows(table):
            others = _texts(frame[:, 0]).filter(~np.isin(of_rows, [*self.remarks])).drop_nulls()
            ends = _texts(frame[:, -1]).str.contains(_WORDS).fill_null(False)
            above = of_rows[ends.to_numpy()] + 1
            is_data |= pl.Series(np.isin([*self.remarks], above)) & is_short & ~is_known
            is_data |= starts.is_in(others.str.extract(_FIRST_WORD).unique().drop_nulls().implode())
            # A short line in `known` is a remark even if its text has the shape of other cells.
            is_formed_like = forms.is_in(shapes_of(others).unique().implode())
            is_data |= is_formed_like & ~(is_known & is_short)
            n += len(others)
            n_numbered += int(others.str.contains(r"\d").sum())
            n_worded += int(others.str.contains(_WORDS).sum())
        # Texts repeated in rows of full width are categories, unless they number pages ("2 of 3").
        pages = texts.str.extract(r"^\D*(\d+)\D+\d+\D*$").cast(pl.Int64, strict=False)
        of_marks = pl.DataFrame({"text": texts, "start": starts, "page": pages})
        is_first = pl.col("page").min().over("start").fill_null(1) <= _FIRST_PAGES
        are_few = pl.len().over("text") <= _MOST_ALIKE
        may_be = is_known | is_short | of_marks.select(is_first & are_few).to_series()
        if max(n - n_numbered, n_worded) <= (1 - READS_AS) * n:
            is_remark = is_known | texts.str.contains(f"{_WORDS}|{_NUMBERS}")
        else:
            is_remark = is_known | (texts.str.contains(_NUMBERS) & (n_numbered == 0))
        found = {*compress(self.remarks, is_remark & may_be & ~is_data.fill_null(False))}
        if len(found - known) > (1 - READS_AS) * n:
            found &= known  # too many: these are rows of data in which other cells are empty
        return found if _LEAST_ABOVE <= n > len(found) else set()

    def _find_totals(self, table: Table | PartedTable, last_line: int) -> None:
        """Remove totals: rows with a label such as "total" that sum up the rows above.

        A single total must be the last row and have no further word in its label, as a customer may
        be called "Total". A label without numbers may end a table with other totals. A row that
        does not sum up is removed, too, if it has the word and the filled columns of a total, and
        no row of data has these filled columns.
        """
        formats: dict[int, NumberFormat] = {}
        for k, cells in enumerate(
            next(self._remaining_rows(table))[0][:HEADER_SAMPLE].iter_columns()
        ):
            format = None if cells.dtype.is_temporal() else Column(cells).inferred_format()
            if isinstance(format, NumberFormat):
                formats[k] = format
        # Line labelled as a total -> (word for a total, mask of filled columns). Lines in `found`
        # are totals; the numbers in lines of `unmatched` are not sums of the rows above.
        found: dict[int, tuple[str | None, bytes]] = {}
        unmatched: dict[int, tuple[str | None, bytes]] = {}
        is_bare = False  # whether the last total's label is only the word for a total
        of_rows: set[bytes] = set()
        # Number of rows, and the sum of each column: over all rows, over rows since the last total,
        # over rows since the last label, and over labelled rows that are no totals.
        whole, block, since, called = np.zeros((4, 1 + len(formats)))
        for frame, lines in self._remaining_rows(table) if formats else ():
            values = [Column(frame[:, k]).read(format).values for k, format in formats.items()]
            given = np.column_stack(values)
            texts = [*map(_texts, frame.iter_columns())]
            filled = np.column_stack([column.is_not_null().to_numpy() for column in texts])
            labels = frame.select(pl.coalesce(*texts)).to_series()
            words = labels.str.extract(f"(?i)({_WORD})")
            is_called = labels.str.contains(_TOTAL).fill_null(False).to_numpy()
            is_called &= filled.sum(axis=1) - np.isfinite(given).sum(axis=1) == 1
            of_rows |= {row.tobytes() for row in np.unique(filled[~is_called], axis=0)}
            counted = np.column_stack([np.ones(len(given)), np.nan_to_num(given)])
            start = 0
            for place in np.flatnonzero(is_called).tolist():
                added = counted[start:place].sum(axis=0)
                whole, block, since, start = whole + added, block + added, since + added, place
                end = words[place], filled[place].tobytes()
                row, line = [str(frame[place, k]) for k in formats], int(lines[place])
                is_end = line == last_line and len(found) > 1 and not block[0]
                is_end = is_end and not np.isfinite(given[place]).any()
                sums = whole, block, whole - called, since
                if is_end or any(_adds_up(given[place], row, one) for one in sums):
                    found[line] = end
                    label = labels[place].strip("*:. ")
                    is_bare = not label or re.fullmatch(_WORD, label, re.I) is not None
                    block, since, start = 0 * block, 0 * since, place + 1
                else:
                    unmatched[line] = end
                    called, since = called + counted[place], -counted[place]
            added = counted[start:].sum(axis=0)
            whole, block, since = whole + added, block + added, since + added
        are_few = len(found) + len(unmatched) <= whole[0] - called[0]
        if are_few and (len(found) > 1 or ([*found] == [last_line] and is_bare)):
            self.leave_out(TOTAL, found)
        alike = {end for end in found.values() if end[1] not in of_rows}
        others = [line for line, end in unmatched.items() if end in alike]
        if are_few and len(others) < len(found) > 1:
            self.leave_out(UNMATCHED, others)

    def _blocks(self, table: Table | PartedTable) -> int:
        """Count empty cells in a first column that labels each block once; return 0 without blocks.

        All other columns are full. The second column has the same values in several blocks, each
        once per block: the months of each region.
        """
        if self.first is None or self.first.num_columns < 4:
            return 0
        first, kept = as_polars(self.first), []
        first = first.filter(~_are_in(first[:, -1].to_numpy(), self._runs()))
        if 2 * _texts(first[:, 0]).null_count() < first.height:
            return 0
        for frame, _ in self._remaining_rows(table):
            labels, *others = map(_texts, frame.iter_columns())
            if any(column.null_count() for column in others):
                return 0
            kept.append(pl.DataFrame({"label": labels, "key": others[0]}))
        rows = pl.concat(kept)
        starts, known = rows["label"].is_not_null(), rows["label"].drop_nulls()
        # Each label must stand above an empty cell, unlike in a column with a few missing cells.
        is_plain = starts[0] and not starts[-1] and not (starts & starts.shift(1)).any()
        is_plain = is_plain and len(known) >= _LEAST_BLOCKS and not known.is_duplicated().any()
        is_plain = is_plain and not any(map(is_measure, known))
        is_plain = is_plain and not rows.select(pl.all().forward_fill()).is_duplicated().any()
        return rows["label"].null_count() * (is_plain and 2 * rows["key"].n_unique() <= len(rows))


def _are_in(lines: IntArray, runs: IntArray) -> BoolArray:
    places = np.searchsorted(runs[:, 0], lines, "right")
    return np.append(-1, runs[:, 1])[places] >= lines


def _all_of(masks: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray | None:
    """Return a mask of the rows where all masks are true; None if there is no such row."""
    found = None
    for mask in masks:
        found = mask if found is None else pc.and_(found, mask)
        if not pc.any(found).as_py():
            return None
    return found


def _holds(cells: pa.ChunkedArray, text: str) -> pa.ChunkedArray:
    # `pa.array`, `pc.equal` and `pc.fill_null` would load pandas.
    known = pl.Series([text]).to_arrow()
    if pa.types.is_string(cells.type):
        begins = pc.starts_with(cells, pattern=text)
        if not pc.any(begins).as_py():
            return begins
    return pc.is_in(cells.cast(known.type), known)


def _is_blank(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        return pc.is_null(cells)
    is_empty = pc.invert(pc.cast(pc.binary_length(cells), pa.bool_()))
    return pc.or_kleene(pc.is_null(cells), pc.or_(is_empty, pc.utf8_is_space(cells)))


def _texts(cells: pl.Series) -> pl.Series:
    texts = cells.cast(pl.String).str.strip_chars()
    return texts.set(texts == "", None)


def _adds_up(given: FloatArray, cells: Sequence[str], sums: FloatArray) -> bool:
    """Whether the numbers of a row equal `sums[1:]` up to rounding; `sums[0]` counts rows."""
    decimals = (re.search(r"[.,](\d+)\D*$", cell) for cell in cells)
    units = np.array([10.0 ** -len(one[1]) if one else 1.0 for one in decimals])
    is_sum = np.abs(given - sums[1:]) <= 0.5 * units + 1e-9 * np.abs(sums[1:])
    n_sums, n_given = (is_sum & (sums[1:] != 0)).sum(), np.isfinite(given).sum()
    least_rows = _LEAST_ROWS if n_given > 1 else _LEAST_ABOVE
    are_all = is_sum[~np.isnan(given)].all()
    return bool(sums[0] >= least_rows and n_sums >= min(n_given, 2) > 0 and are_all)
