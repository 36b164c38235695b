"""Rows below the header that are no data: repeated headers, rules, totals and the foot.

Repeated headers, rules and the foot are left out while rows come in. Totals are checked against the
rows they add up, so they are left out of the table once it is complete, and so are labels that
stand only in the first row of their block filled down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, repeat

import numpy as np
import polars as pl
import pyarrow as pa

from kpca_apps.names import listed, one_line
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.read.layout import Head, is_measure, is_rule
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    Table,
    as_arrow,
    as_frame,
    collect,
)
from kpca_apps.tables.values import MISSING_WORDS, Column

# Rows at the end among which a foot is looked for; and the fewest that show what columns hold.
_MOST_FOOT, _LEAST_ROWS = 50, 3
_SHARE = 0.9  # of cells, to say what a column holds
_LISTED = 5  # lines named in a note
_WORD = (
    "(?:grand|sub|over-?all|general)?[ -]?totals?|sum|summe|(?:gesamt|zwischen|end)-?summe|gesamt"
    "|insgesamt|somme|(?:sous-)?total g[\u00e9e]n[\u00e9e]ral|sous-total|totale|totaal|suma|razem"
    "|\u0438\u0442\u043e\u0433\u043e|\u0432\u0441\u0435\u0433\u043e|\u5408\u8ba1|\u603b\u8ba1"
)
# Polars' regular expressions and Python's read it alike.
_TOTAL = rf"(?i)^[*\s]*(?:{_WORD})(?:\W|$)|\b(?:{_WORD})[*:\s]*$"
_FOOT = re.compile(
    r"(?i)\W*(?:(?:page|seite|p[\u00e1a]gina)\W*\d+(?:\W|$)|copyright|\u00a9|\(c\)\s|source|quelle"
    r"|data from|last updated|(?:foot)?notes?:|(?:report )?(?:generated|printed|exported|created)"
    r"|end of (?:report|file|table)|total records|\d+ rows? (?:selected|affected|returned))"
)
_PAGE = re.compile(r"(?i)\W*(?:page|seite|p[\u00e1a]gina)\W*\d+(?:\s*(?:of|von|de|/)\s*\d+)?\W*")
# Relative difference of a total from its sum that rounding explains: items of four digits.
_ROUNDING = 1e-4
_BOUNDARIES = 100  # earlier totals from which on a total may count


def is_total(label: str) -> bool:
    """Whether a label says that its row is a total."""
    return re.search(_TOTAL, label.strip()) is not None


def ends_table(cells: Sequence[str], set_off: bool) -> bool:
    """Whether a row of another width may be the first or a further one of the foot.

    It says so by its words, or stands behind a blank line or a rule and has no numbers.
    """
    words = [word for cell in cells if (word := cell.strip())]
    if not words or _FOOT.match(words[0]) or is_total(words[0]):
        return True
    return set_off and not any(map(is_measure, words))


def breaks_page(cells: Sequence[str]) -> bool:
    """Whether a row says nothing but the number of a page."""
    words = [word for cell in cells if (word := cell.strip())]
    return len(words) == 1 and _PAGE.fullmatch(words[0]) is not None


@dataclass
class LeftOut:
    """Lines of a file that are no data, by what they are."""

    noun: str  # "line" of a text, "row" of a sheet
    lines: dict[str, list[int]] = field(default_factory=dict)
    title: str = ""

    def add(self, kind: str, *lines: int) -> None:
        """Add lines of a kind."""
        self.lines.setdefault(kind, []).extend(lines)

    def notes(self) -> list[str]:
        """Say in one sentence what was left out."""
        kinds = {kind: sorted(lines) for kind, lines in self.lines.items() if lines}
        parts = []
        for kind, lines in sorted(kinds.items(), key=lambda item: item[1][0]):
            quote = f', "{one_line(self.title, 60)}"' if kind == "title" else ""
            parts.append(f"{kind} ({_ranges(lines, self.noun)}{quote})")
        if not parts:
            return []
        return [f"Not data and left out: {', '.join(parts)}; --layout as-is turns this off."]


def _ranges(lines: Sequence[int], noun: str) -> str:
    """Write lines as ranges, "lines 1-4, 9", and of many how many more."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    shown = ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in runs[:_LISTED])
    rest = sum(b - a + 1 for a, b in runs[_LISTED:])
    more = f" and {rest:,} more" if rest else ""
    return f"{noun}{'s' * (len(lines) > 1)} {shown}{more}"


class Body:
    """The rows of one file, on their way from its reader into a table."""

    def __init__(self, noun: str, notes: list[str]) -> None:
        self.left_out, self._notes = LeftOut(noun), notes
        self._headers: list[list[str]] = []  # rows that are no data wherever they occur again
        self._known: set[int] = set()  # lines of the head
        self._labels = False  # whether a label names a total

    def begin(
        self,
        head: Head,
        rows: Sequence[Sequence[str]],
        lines: Sequence[int],
        columns: Sequence[bool] | None = None,
    ) -> None:
        """Take note of the head: the first rows, their lines, and which cells are of columns."""
        first = lines[0]
        if lines[head.place] > first:
            self.left_out.add("title", *range(first, lines[head.place]))
            cells = next(row for row in rows if any(map(str.strip, row)))
            self.left_out.title = ", ".join(filter(None, (" ".join(c.split()) for c in cells)))
        for place, kind in head.below.items():
            self._known.add(lines[place])
            if kind:
                self.left_out.add(kind, lines[place])
        if head.names is not None:
            headers = (rows[place] for place in (head.place, *head.below))
            self._headers = [
                [cell.strip() for cell in compress(row, columns or repeat(True))] for row in headers
            ]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Whether a row repeats one of the head."""
        return len(cells) > 1 and [cell.strip() for cell in cells] in self._headers

    def rows(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows that are data, but for totals; the line of each is in the last column."""
        held: pa.Table | None = None
        for piece in pieces:
            piece = self._without_headers(piece)
            # The end of the table stays here until it is known to be the end.
            if held is not None and min(held.num_rows, piece.num_rows) > 2 * _MOST_FOOT:
                yield held
                held = piece
            else:
                held = piece if held is None else pa.concat_tables([held, piece])
        if held is not None:
            yield self._without_foot(held)
        self._notes[:0] = self.left_out.notes()

    def _without_headers(self, piece: pa.Table) -> pa.Table:
        frame, lines = as_frame(piece, True)
        assert lines is not None
        if frame.width < 2 or not frame.height:
            return piece
        dropped = np.isin(lines, [*self._known])
        key = next((k for row in self._headers for k, c in enumerate(row) if c), 0)
        texts = _texts(frame[:, key])
        marked = texts.str.contains(r"^[-=_+*~][-=_+*:~. ]*$")
        for header in self._headers:
            marked |= texts == header[key]
        for place in np.flatnonzero(marked.fill_null(False).to_numpy() & ~dropped).tolist():
            cells = _cells(frame, place)
            if self.is_header(cells) or is_rule(cells):
                kind = "rules" if is_rule(cells) else "repeated headers"
                self.left_out.add(kind, int(lines[place]))
                dropped[place] = True
        self._labels = self._labels or bool(_labels(frame).any())
        return piece.filter(pa.array(~dropped)) if dropped.any() else piece

    def _without_foot(self, piece: pa.Table) -> pa.Table:
        frame, lines = as_frame(piece, True)
        assert lines is not None
        n = frame.height
        first = max(n - 2 * _MOST_FOOT, 0)
        rows = [_cells(frame, place) for place in range(first, n)]
        begin = first + _start_of_foot(rows, lines[first:].tolist())
        if begin == n or begin == 0:
            return piece
        self.left_out.add("foot", *lines[begin:].tolist())
        return piece.slice(0, begin)

    def settled(self, table: Table | PartedTable, in_memory_rows: float) -> Table | PartedTable:
        """Leave out totals, and fill labels down that stand once a block."""
        first = next(table.tables()).frame
        totals = _total_rows(table) if self._labels else np.zeros(0, np.bool_)
        fills = first.width > 2 and _is_sparse(first[:, 0]) and _names_blocks(table, totals)
        if not (totals.any() or fills):
            return table
        before, notes = self.left_out.notes(), []
        names = list(table.columns)

        def pieces() -> Iterator[pa.Table]:
            start, last = 0, pl.Series([None], dtype=pl.String)
            for part in table.tables():
                frame, lines = part.frame, part.lines
                assert lines is not None
                here = totals[start : start + frame.height]
                start += frame.height
                if here.any():
                    self.left_out.add("totals", *lines[here].tolist())
                    frame, lines = frame.filter(~here), lines[~here]
                if fills:
                    labels = pl.concat([last, _texts(frame[:, 0])]).forward_fill()
                    last = labels[-1:]
                    frame = frame.with_columns(labels[1:].alias(names[0]))
                yield as_arrow(frame, lines)
            notes.extend(self.left_out.notes())
            if fills:
                notes.append(
                    f"Column {listed(names[:1])} names only the first row of each block: it is "
                    "filled down; --layout as-is turns this off."
                )

        kept = tuple(note for note in table.source.notes if note not in before)
        source = replace(table.source, notes=kept)
        size = table.parts[0].stop if isinstance(table, PartedTable) else None
        rows = Rows(pieces(), names, notes, True)
        return collect(rows, source, lambda: table.source.sha256, in_memory_rows, size)


def _texts(cells: pl.Series) -> pl.Series:
    """Cells as text without blanks around, null where empty."""
    texts = cells if cells.dtype == pl.String else cells.cast(pl.String)
    texts = texts.str.strip_chars()
    return texts.set(texts == "", None)


def _cells(frame: pl.DataFrame, place: int) -> list[str]:
    return ["" if cell is None else str(cell) for cell in frame.row(place)]


def _labels(frame: pl.DataFrame) -> BoolArray:
    """Mark the rows (n,) whose first cell with something in it names a total."""
    found = np.zeros(frame.height, np.bool_)
    is_open = np.ones(frame.height, np.bool_)
    for column in frame.iter_columns():
        # Labels stand on the left; a column that is full ends the search.
        if not is_open.any() or column.dtype.is_numeric() or column.dtype.is_temporal():
            break
        texts = _texts(column)
        found |= is_open & texts.str.contains(_TOTAL).fill_null(False).to_numpy()
        is_open &= texts.is_null().to_numpy()
    return found


def _start_of_foot(rows: Sequence[Sequence[str]], lines: Sequence[int]) -> int:
    """Return where the foot begins among the last rows of a table; their number if there is none.

    A row of it has one cell, or names a total behind a gap, and the first says so by its words, by
    a gap above it, or by text in a column of measures.
    """
    n, width = len(rows), len(rows[0]) if rows else 0
    if width < 2:
        return n
    filled = [[k for k, cell in enumerate(row) if cell.strip()] for row in rows]

    def is_gap(place: int) -> bool:
        """Whether rows are missing above one: blank ones, or lines that were left out."""
        if place == 0:
            return False
        inside = sum(cell.count("\n") for cell in rows[place - 1])
        return not filled[place - 1] or lines[place] - lines[place - 1] - inside > 1

    begin = n
    while begin and n - begin < _MOST_FOOT:
        places = filled[begin - 1]
        label = rows[begin - 1][places[0]] if places else ""
        lone = len(places) == 1 and not is_measure(label.strip())
        if places and not lone and not (is_total(label) and is_gap(begin - 1)):
            break
        begin -= 1
    body = [place for place in range(begin) if filled[place]]
    if len(body) < _LEAST_ROWS:
        return n
    has_gaps = sum(map(is_gap, body)) > (1 - _SHARE) * len(body)
    for place in range(begin, n):
        if not filled[place]:
            continue
        column = filled[place][0]
        label = rows[place][column].strip()
        known = [cell for one in body if (cell := rows[one][column].strip())]
        misfits = sum(map(is_measure, known)) >= max(_SHARE * len(known), _LEAST_ROWS)
        set_off = width > 2 and is_gap(place) and not has_gaps
        if _FOOT.match(label) or (is_total(label) and is_gap(place)) or misfits or set_off:
            while place and not filled[place - 1]:
                place -= 1
            return place
    return n


def _values(table: Table, formats: dict[str, object]) -> FloatArray:
    """Read the cells (rows, columns) as numbers; NaN for all else."""
    found = np.full(table.frame.shape, np.nan)
    for number, name in enumerate(table.columns):
        column: Column = table.column(name)
        if table.frame[name].dtype.is_temporal():
            continue
        if formats.get(name) is None:
            formats[name] = column.number_format()
        if formats[name] is not None:
            found[:, number] = column.read(formats[name]).values  # type: ignore[arg-type]
    return found


def _total_rows(table: Table | PartedTable) -> BoolArray:
    """Mark the rows (n,) of a table that are totals.

    A total is named by its label, and is either empty but for it, or has no other text and, in a
    column at least, the sum of the rows above: of all, or from an earlier total on.
    """
    formats: dict[str, object] = {}
    found = []
    sums = np.zeros(len(table.columns))
    earlier: list[FloatArray] = [sums.copy()]
    for part in table.tables():
        values = _values(part, formats)
        here = np.zeros(len(values), np.bool_)
        start = 0
        for place in np.flatnonzero(_labels(part.frame)).tolist():
            sums = sums + np.nansum(values[start:place], axis=0)
            start = place + 1
            cells = _cells(part.frame, place)
            filled = [k for k, c in enumerate(cells) if c.strip().casefold() not in MISSING_WORDS]
            given = values[place]
            if all(np.isfinite(given[k]) for k in filled[1:]):
                known = np.isfinite(given)
                known[filled[0]] = False
                by_part = sums - np.array(earlier)
                close = np.abs(given - by_part) <= _ROUNDING * np.abs(by_part)
                here[place] = not known.any() or bool((close & known & (by_part != 0)).any())
            if here[place]:
                earlier = [earlier[0], *earlier[1:][-_BOUNDARIES:], sums]
            else:
                sums = sums + np.nan_to_num(given)
        sums = sums + np.nansum(values[start:], axis=0)
        found.append(here)
    return np.concatenate(found)


def _is_sparse(cells: pl.Series) -> bool:
    """Whether labels may stand once a block: the first row has one, and most rows none."""
    texts = _texts(cells)
    return texts[0] is not None and 2 * texts.null_count() >= len(texts)


def _names_blocks(table: Table | PartedTable, totals: BoolArray) -> bool:
    """Whether each label of the first column opens a block, in which the second never repeats.

    The second column alone does: months of each region.
    """
    pairs = pl.concat(
        [
            pl.DataFrame([_texts(p.frame[:, k]).alias(str(k)) for k in (0, 1)])
            for p in table.tables()
        ]
    )
    if totals.any():
        pairs = pairs.filter(~totals)
    labels = pairs["0"].drop_nulls()
    if len(labels) < 2 or labels.n_unique() < len(labels) or pairs["1"].null_count():
        return False
    filled = pairs.with_columns(pl.col("0").forward_fill())
    return filled.n_unique() == filled.height and 2 * pairs["1"].n_unique() <= len(pairs)
