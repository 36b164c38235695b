"""Rows below the header that are no data: repeated headers, rules, totals and the foot.

Repeated headers, rules and the foot are left out while rows come in. Totals are checked against the
rows they add up, so they are left out of the table once it is complete, and so are labels that
stand only in the first row of their block filled down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, repeat

import numpy as np
import polars as pl
import pyarrow as pa

from kpca_apps.names import listed, one_line
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.read.head import Head, is_measure, is_rule
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
MOST_FOOT, _LEAST_ROWS = 50, 3
_SHARE = 0.9  # of cells, to say what a column holds
_FEW = 0.01  # share of the rows with one cell, where such a row may be a total or a foot
_LISTED = 5  # lines named in a note
_WORD = (
    "(?:grand|sub|over-?all|general)?[ -]?totals?|sum|summe|(?:gesamt|zwischen|end)-?summe|gesamt"
    "|insgesamt|somme|(?:sous-)?total g[\u00e9e]n[\u00e9e]ral|sous-total|totale|totaal|suma|razem"
    "|\u0438\u0442\u043e\u0433\u043e|\u0432\u0441\u0435\u0433\u043e|\u5408\u8ba1|\u603b\u8ba1"
)
# Polars' regular expressions and Python's read it alike.
_TOTAL = rf"(?i)^[*\s]*(?:{_WORD})(?:\W|$)|\b(?:{_WORD})[*:\s]*$"
_FOOT = re.compile(
    r"(?i)\W*(?:(?:page|seite|p[\u00e1a]gina)\W*\d+(?:\W|$)|copyright|\u00a9|\(c\)\s|sources?\W|quellen?\W"
    r"|data from|last updated|(?:foot)?notes?:|(?:report )?(?:generated|printed|exported|created)"
    r"|end of (?:report|file|table)|total records|\d+ rows? (?:selected|affected|returned))"
)
_PAGE = re.compile(r"(?i)\W*(?:page|seite|p[\u00e1a]gina)\W*\d+(?:\s*(?:of|von|de|/)\s*\d+)?\W*")
# Relative difference of a total from its sum that rounding explains: items of four digits.
_ROUNDING = 1e-4
_BOUNDARIES = 100  # earlier totals from which on a total may count


def names_total(label: str) -> bool:
    """Whether a label says that its row is a total."""
    return re.search(_TOTAL, label.strip()) is not None


def ends_table(cells: Sequence[str], set_off: bool) -> bool:
    """Whether a row of another width may be the first or a further one of the foot.

    It says so by its words, or stands behind a blank line or a rule and has no numbers.
    """
    words = [word for cell in cells if (word := cell.strip())]
    if not words or _FOOT.match(words[0]) or names_total(words[0]):
        return True
    return set_off and not any(map(is_measure, words))


def breaks_page(cells: Sequence[str]) -> bool:
    """Whether a row says nothing but the number of a page."""
    words = [word for cell in cells if (word := cell.strip())]
    return len(words) == 1 and _PAGE.fullmatch(words[0]) is not None


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
        self._noun, self._notes = noun, notes  # "line" of a text, "row" of a sheet
        self._left_out: dict[str, list[int]] = {}  # what is no data -> its lines
        self._title = ""
        self._headers: list[list[str]] = []  # rows that are no data wherever they occur again
        self._known: set[int] = set()  # lines of the head
        self._labels = False  # whether a label names a total
        self._is_sparse: bool | None = None  # whether the first column may name blocks

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
            self.leave_out("title", *range(first, lines[head.place]))
            cells = next(row for row in rows if any(map(str.strip, row)))
            self._title = ", ".join(filter(None, (" ".join(c.split()) for c in cells)))
        for place, kind in head.below.items():
            self._known.add(lines[place])
            self.leave_out(kind, lines[place])
        if head.names is not None:
            headers = (rows[place] for place in (head.place, *head.below))
            self._headers = [
                [cell.strip() for cell in compress(row, columns or repeat(True))] for row in headers
            ]

    def leave_out(self, kind: str, *lines: int) -> None:
        """Take note of lines that are no data, and of what they are."""
        self._left_out.setdefault(kind, []).extend(lines)

    def _sentence(self) -> list[str]:
        """Say what was left out, in one sentence if anything was."""
        parts = []
        for lines, kind in sorted((sorted(of), kind) for kind, of in self._left_out.items() if of):
            quote = f', "{one_line(self._title, 60)}"' if kind == "title" else ""
            parts.append(f"{kind} ({_ranges(lines, self._noun)}{quote})")
        sentence = f"Not data and left out: {', '.join(parts)}; --layout as-is turns this off."
        return [sentence] if parts else []

    def is_header(self, cells: Sequence[str]) -> bool:
        """Whether a row repeats one of the head."""
        return len(cells) > 1 and [cell.strip() for cell in cells] in self._headers

    def rows(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows that are data, but for totals; the line of each is in the last column."""
        held: pa.Table | None = None
        for piece in pieces:
            piece = self._without_headers(piece)
            held = piece if held is None else pa.concat_tables([held, piece])
            # The last rows stay here until they are known to end the table.
            if (n_before := held.num_rows - 2 * MOST_FOOT) > 0:
                yield held.slice(0, n_before)
                held = held.slice(n_before)
        if held is not None:
            yield self._without_foot(held)
        self._notes[:0] = self._sentence()

    def _without_headers(self, piece: pa.Table) -> pa.Table:
        n_columns = piece.num_columns - 1
        if n_columns < 2 or not piece.num_rows:
            return piece
        lines = _series(piece, n_columns).to_numpy()
        dropped = np.isin(lines, [*self._known])
        keys = [next(k for k, cell in enumerate(row) if cell) for row in self._headers] or [0]
        marked = _texts(_series(piece, keys[0])).str.contains(r"^[-=_+*~][-=_+*:~. ]*$")
        for key, header in zip(keys, self._headers, strict=False):
            marked |= _texts(_series(piece, key)) == header[key]
        for place in np.flatnonzero(marked.fill_null(False).to_numpy() & ~dropped).tolist():
            row = (piece.column(k)[place].as_py() for k in range(n_columns))
            cells = ["" if cell is None else str(cell) for cell in row]
            if self.is_header(cells) or is_rule(cells):
                kind = "rules" if is_rule(cells) else "repeated headers"
                self.leave_out(kind, int(lines[place]))
                dropped[place] = True
        if not self._labels:
            self._labels = bool(_labels(_series(piece, k) for k in range(n_columns)).any())
        if self._is_sparse is None and not dropped.all():
            labels = _texts(_series(piece, 0).filter(~dropped))
            is_open = n_columns > 2 and labels[0] is not None
            self._is_sparse = is_open and 2 * labels.null_count() >= len(labels)
        return piece.filter(pa.array(~dropped)) if dropped.any() else piece

    def _without_foot(self, piece: pa.Table) -> pa.Table:
        frame, lines = as_frame(piece, True)
        assert lines is not None
        rows = [_cells(frame, place) for place in range(frame.height)]
        begin = _start_of_foot(rows, lines.tolist())
        self.leave_out("foot", *lines[begin:].tolist())
        return piece.slice(0, begin)

    def settled(self, table: Table | PartedTable, in_memory_rows: float) -> Table | PartedTable:
        """Leave out totals, and fill labels down that stand once a block."""
        totals = _total_rows(table) if self._labels else np.zeros(0, np.bool_)
        fills = bool(self._is_sparse) and _names_blocks(table, totals)
        if not (totals.any() or fills):
            return table
        before, notes = self._sentence(), []
        names = list(table.columns)

        def pieces() -> Iterator[pa.Table]:
            start, last = 0, pl.Series([None], dtype=pl.String)
            for part in table.tables():
                frame, lines = part.frame, part.lines
                assert lines is not None
                here = totals[start : start + frame.height]
                start += frame.height
                if here.any():
                    self.leave_out("totals", *lines[here].tolist())
                    frame, lines = frame.filter(~here), lines[~here]
                if fills:
                    labels = pl.concat([last, _texts(frame[:, 0])]).forward_fill()
                    last = labels[-1:]
                    frame = frame.with_columns(labels[1:].alias(names[0]))
                yield as_arrow(frame, lines)
            notes.extend(self._sentence())
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


def _series(piece: pa.Table, column: int) -> pl.Series:
    return pl.Series(pl.from_arrow(piece.column(column)))


def _labels(columns: Iterable[pl.Series]) -> BoolArray:
    """Mark the rows (n,) whose first cell with something in it names a total."""
    found: BoolArray | None = None
    is_open: BoolArray | None = None
    for column in columns:
        texts = _texts(column)
        here = texts.str.contains(_TOTAL).fill_null(False).to_numpy()
        is_empty = texts.is_null().to_numpy()
        found = here if found is None else found | (here & is_open)
        is_open = is_empty if is_open is None else is_open & is_empty
        # Labels stand on the left: a column that is full ends the search.
        if not is_open.any():
            break
    assert found is not None
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
    while begin and n - begin < MOST_FOOT:
        places = filled[begin - 1]
        label = rows[begin - 1][places[0]] if places else ""
        lone = len(places) == 1 and not is_measure(label.strip())
        if places and not lone and not (names_total(label) and is_gap(begin - 1)):
            break
        begin -= 1
    body = [place for place in range(begin) if filled[place]]
    n_lone = sum(len(filled[place]) == 1 for place in body)
    if len(body) < _LEAST_ROWS or n_lone > _FEW * len(body):
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
        if _FOOT.match(label) or (names_total(label) and is_gap(place)) or misfits or set_off:
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

    A total is named by its label. It has no other text and is, in a column at least, the sum of
    rows above: of all, or from an earlier total on, as most rows with such labels are. Or it has
    nothing but its label, in a table whose other rows have more.
    """
    formats: dict[str, object] = {}
    found, bare, n_named, n_lone = [], [], 0, 0
    # Sum and number of the cells above, by column.
    so_far = np.zeros((2, len(table.columns)))
    earlier = [so_far]
    for part in table.tables():
        values = _values(part, formats)
        labels = _labels(part.frame.iter_columns())
        lone = sum((~_texts(c).is_null().to_numpy()).astype(int) for c in part.frame) == 1
        n_named, n_lone = n_named + int(labels.sum()), n_lone + int((lone & ~labels).sum())
        bare.append(lone & labels)
        adds_up = np.zeros(len(values), np.bool_)
        start = 0
        for place in np.flatnonzero(labels & ~lone).tolist():
            so_far = so_far + _sums(values[start:place])
            start = place + 1
            cells = [cell.strip().casefold() for cell in _cells(part.frame, place)]
            label = next(k for k, cell in enumerate(cells) if cell)
            given = np.where(np.arange(len(cells)) == label, np.nan, values[place])
            others = (k for k, c in enumerate(cells) if k != label and c not in MISSING_WORDS)
            sums, counts = (so_far - np.array(earlier)).transpose(1, 0, 2)
            is_sum = np.abs(given - sums) <= _ROUNDING * np.abs(sums)
            adds_up[place] = (is_sum & (counts > 1) & (sums != 0)).any() and all(
                np.isfinite(given[k]) for k in others
            )
            if adds_up[place]:
                earlier = [earlier[0], *earlier[1:][-_BOUNDARIES:], so_far]
            else:
                so_far = so_far + _sums(values[place : place + 1])
        so_far = so_far + _sums(values[start:])
        found.append(adds_up)
    n_rows = table.source.n_rows
    is_total: BoolArray = np.concatenate(found)
    is_bare: BoolArray = np.concatenate(bare)
    if n_lone > _FEW * n_rows or n_rows - n_named < _LEAST_ROWS:
        is_bare[:] = False
    if 2 * is_total.sum() < n_named - is_bare.sum():
        is_total[:] = False
    is_total |= is_bare
    return is_total


def _sums(values: FloatArray) -> FloatArray:
    """Sum and number of the known cells of each column."""
    return np.stack([np.nansum(values, axis=0), np.isfinite(values).sum(axis=0)])


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
    labels, is_first = pairs["0"].drop_nulls(), pairs["0"].is_not_null()
    if len(labels) < 2 or labels.n_unique() < len(labels) or pairs["1"].null_count():
        return False
    # Blocks of one row would make labels of what merely is sparse.
    if (is_first & is_first.shift(1)).any() or is_first[-1]:
        return False
    filled = pairs.with_columns(pl.col("0").forward_fill())
    return filled.n_unique() == filled.height and 2 * pairs["1"].n_unique() <= len(pairs)
