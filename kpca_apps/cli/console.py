"""What the commands say: words on stderr, data on stdout, nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpca_apps.files.names import one_line

if TYPE_CHECKING:
    from kpca_apps.novelty.result import RankedRow, ScreeningResult
    from kpca_apps.novelty.table.columns import ColumnPlan

__all__ = [
    "TOP",
    "Console",
    "column_lines",
    "explanation_lines",
    "odd_cell_lines",
    "plan_lines",
    "say_error",
    "say_line",
    "summary_lines",
    "terminal_width",
]

TOP = 5
MAX_LINE = 2_000
SHARES = "share: of all that the score drops when the values seen are replaced by those expected."


@dataclass(frozen=True)
class Console:
    """Where a command speaks; with `quiet` only errors are said."""

    quiet: bool = False

    def say(self, text: str = "") -> None:
        """Say a paragraph on stderr, wrapped to the terminal; control characters are escaped."""
        if self.quiet:
            return
        _tell(_wrapped(text) + "\n")

    def lines(self, lines: list[str]) -> None:
        """Say lines that are laid out already."""
        if not self.quiet:
            _tell("".join(f"{one_line(line, terminal_width())}\n" for line in lines))

    def data(self, text: str) -> None:
        """Put data on stdout, as it is."""
        sys.stdout.write(text.rstrip("\n") + "\n")

    def data_path(self, path: Path) -> None:
        """Put a path on stdout: as it is for a program, in one line that steers no terminal."""
        self.data(one_line(str(path), MAX_LINE) if sys.stdout.isatty() else str(path))

    def data_lines(self, lines: list[str]) -> None:
        """Put lines for people on stdout; control characters are escaped."""
        sys.stdout.writelines(f"{one_line(line, MAX_LINE)}\n" for line in lines)

    def data_json(self, value: Any) -> None:
        """Put a JSON document on stdout."""
        self.data(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Show that work is going on, on a terminal only; nothing of it remains."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console as Terminal
        from rich.text import Text

        shown = Terminal(stderr=True, highlight=False).status(
            Text(one_line(text, terminal_width() - 4))
        )
        # A terminal that is closed meanwhile does not end the work.
        with suppress(OSError):
            shown.__enter__()
        try:
            yield
        finally:
            with suppress(OSError):
                shown.__exit__(None, None, None)


def say_error(message: str) -> None:
    """Say what went wrong, in one line, if anybody listens."""
    say_line(f"error: {' '.join(message.split())}")


def say_line(message: str) -> None:
    """Say one line on stderr, if anybody listens; control characters are escaped."""
    _tell(f"{one_line(message, MAX_LINE)}\n")


def _tell(text: str) -> None:
    """Write to stderr; where that cannot be written to, the work goes on without words."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # What is left in the buffer goes nowhere: flushed again at the end, it would fail again.
        with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def summary_lines(result: ScreeningResult) -> list[str]:
    """Lay out the oddest row of each kind of reason, its first reason on a line of its own."""
    from kpca_apps.report.novelty.text import scores_text

    shown = result.oddest_of_each_kind[:TOP]
    scores, _ = scores_text([row.score for row in shown], result.threshold.value)
    rows = [_row_cells(row, score) for row, score in zip(shown, scores, strict=True)]
    scale = result.scale.name if result.scale else ""
    head = ("rank", "flagged", "row", "line", "id", scale, "score")
    # Rows of binary files have no line, and most tables no id: no column for what is not there.
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    top, *lines = column_lines([tuple(row[place] for place in kept) for row in (head, *rows)])
    below = [[f"{'':6}{line}" for line in (_first_reason(row), *_hint_lines(row))] for row in shown]
    # Ranks that skip some would puzzle a reader.
    is_top = [row.rank for row in shown] == list(range(1, len(shown) + 1))
    title = [] if is_top else ["The oddest row of each kind of reason:"]
    return [
        *title,
        top,
        *chain.from_iterable((line, *more) for line, more in zip(lines, below, strict=True)),
    ]


def odd_cell_lines(result: ScreeningResult) -> list[str]:
    """Lay out the clearest of the cells that are odd by themselves, a line each."""
    cells, n = result.odd_cells[:TOP], result.n_odd_cells
    found = "1 cell is odd by itself:" if n == 1 else f"{n:,} cells are odd by themselves:"
    in_lines = any(cell.line is not None for cell in cells)
    rows = [("line" if in_lines else "row", "column", "reads", "probably meant")]
    for cell in cells:
        more = f" (and {cell.n_cells - 1:,} more)" if cell.n_cells > 1 else ""
        where = str(cell.row if cell.line is None else cell.line)
        seen = f"{one_line(cell.seen, 20)}{more}"
        rows.append((where, one_line(cell.column, 24), seen, one_line(cell.suggestion, 20)))
    # Where nothing is clearly meant, there is no column for it.
    width = 4 if any(cell.suggestion for cell in cells) else 3
    n_left = n - sum(cell.n_cells for cell in cells)
    left = [f"... and {n_left:,} more in the report, each with why."] if n_left else []
    return [found, *column_lines([row[:width] for row in rows]), *left]


def _row_cells(row: RankedRow, score: str) -> tuple[str, ...]:
    line = "" if row.line is None else str(row.line)
    flagged = "yes" if row.flagged else "no"
    return (
        str(row.rank),
        flagged,
        str(row.row),
        line,
        one_line(row.id or "", 12),
        _rarity(row),
        score,
    )


def _first_reason(row: RankedRow) -> str:
    if not row.reasons:
        return "as expected in every column" if row.explained else "(not explained)"
    from kpca_apps.report.novelty.text import is_missing

    reason, *others = row.reason_sets[0]
    seen = "missing" if is_missing(reason.seen) else one_line(reason.seen, 20)
    expected = "no value" if is_missing(reason.expected) else one_line(reason.expected, 20)
    beside = f" (with {', '.join(one_line(other.column, 24) for other in others)})" * bool(others)
    return f"{one_line(reason.column, 24)}: {seen}, expected {expected}{beside}"


def _hint_lines(row: RankedRow) -> list[str]:
    """Lay out what may have gone wrong with a row, below its reason."""
    return [
        line
        for hint in row.hints
        for line in textwrap.wrap(
            one_line(hint, MAX_LINE), terminal_width() - 6, break_on_hyphens=False
        )
    ]


def _rarity(row: RankedRow) -> str:
    if row.rarity is not None:
        return row.rarity.words
    return "" if row.p_value is None else f"{row.p_value:.3g}"


def explanation_lines(row: RankedRow) -> list[str]:
    """Lay out all reasons of one row, a line a column, and what may have gone wrong."""
    if not row.reasons:
        return ["Every column reads what the rows most like it do.", *row.hints]
    rows: list[tuple[str, ...]] = [("share", "column", "seen", "expected")]
    for reasons in row.reason_sets:
        share = sum(reason.share for reason in reasons)
        first = f"{share:.0%}" if share else "farthest"
        for reason in reasons:
            told = first if reason is reasons[0] else "together"
            texts = (reason.column, reason.seen, reason.expected)
            rows.append((told, *(one_line(text, 28) for text in texts)))
    return [*column_lines(rows), "", *row.hints, SHARES]


def plan_lines(plan: ColumnPlan) -> list[str]:
    """Lay out what every column of a table becomes, a line a column."""
    head = ("column", "taken as", "missing", "distinct", "why")
    rows = [
        (one_line(s.name, 28), s.role, str(s.n_missing), str(s.n_distinct), one_line(s.why, 90))
        for s in plan.specs
    ]
    return column_lines([head, *rows])


def column_lines(rows: list[tuple[str, ...]]) -> list[str]:
    """Lay out rows of cells under each other.

    Examples
    --------
    >>> column_lines([("file", "sigma"), ("a.png", "3")])
    ['file   sigma', 'a.png  3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def terminal_width() -> int:
    """Return how many characters a line may take, 40 to 100."""
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, 100))


def _wrapped(text: str) -> str:
    return textwrap.fill(one_line(text, MAX_LINE), terminal_width(), break_on_hyphens=False)
