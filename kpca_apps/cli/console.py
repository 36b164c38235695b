"""What the commands say: words on stderr, data on stdout, nothing that a terminal would obey."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from kpca_apps.names import one_line, visible, without_passwords

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task
    from rich.text import Text

    from kpca_apps.denoise.result import ImageOutcome
    from kpca_apps.report.document import Document

MAX_LINE = 2_000
MOST_FAILURES = 5
SPEED_PERIOD = 300.0  # seconds back that the remaining time is reckoned from


@dataclass(frozen=True)
class Console:
    """Where a command speaks; with `quiet` only errors are said."""

    quiet: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whether there is a terminal to show on how far the work is."""
        return not self.quiet and sys.stderr.isatty()

    def say(self, text: str = "") -> None:
        """Say a paragraph on stderr, wrapped to the terminal; control characters are escaped."""
        if not self.quiet:
            wide = terminal_width()
            _write(textwrap.fill(one_line(text, MAX_LINE), wide, break_on_hyphens=False) + "\n")

    def lines(self, lines: list[str]) -> None:
        """Say lines that are laid out already."""
        if not self.quiet:
            _write("".join(f"{one_line(line, terminal_width())}\n" for line in lines))

    def data(self, text: str) -> None:
        """Put data on stdout: as it is for a program, and so that it steers no terminal."""
        lines = text.rstrip("\n").split("\n")
        shown = map(visible, lines) if sys.stdout.isatty() else lines
        sys.stdout.writelines(f"{line}\n" for line in shown)

    def data_path(self, path: PurePath | str) -> None:
        """Put a path on stdout: as it is for a program, in one line that steers no terminal."""
        self.data(one_line(str(path), MAX_LINE) if sys.stdout.isatty() else str(path))

    def data_lines(self, lines: list[str]) -> None:
        """Put lines for people on stdout; control characters are escaped."""
        sys.stdout.writelines(f"{one_line(line, MAX_LINE)}\n" for line in lines)

    def data_json(self, document: Document, content: Mapping[str, Any]) -> None:
        """Put a JSON document of a kind on stdout; NaN is ``null``, infinity ``"inf"``."""
        from kpca_apps.report.result_json import to_json

        self.data(to_json(document, content))

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Show for how long work is going on, on a terminal only; nothing of it remains."""
        if not self.shows_progress:
            yield
            return
        from rich.progress import TextColumn, TimeElapsedColumn

        bar = _bar(TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        bar.add_task(one_line(text, terminal_width() - 12), total=None)
        # A terminal that is closed meanwhile does not end the work.
        with suppress(OSError):
            bar.start()
        try:
            yield
        finally:
            with suppress(OSError):
                bar.stop()


def say_error(message: str) -> None:
    """Say what went wrong, in one line, if anybody listens."""
    say_line(f"error: {without_passwords(' '.join(message.split()))}")


def say_line(message: str) -> None:
    """Say one line on stderr, if anybody listens; control characters are escaped."""
    _write(f"{one_line(message, MAX_LINE)}\n")


def _write(text: str) -> None:
    """Write to stderr; where that cannot be written to, the work goes on without words."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # What is left in the buffer goes nowhere: flushed again at the end, it would fail again.
        with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def column_lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay out rows of cells under each other.

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


@contextmanager
def row_progress(console: Console, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show how far a pass over rows is; what is yielded takes how many more are done."""
    if not console.shows_progress:
        yield lambda n_done: None
        return
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Rows a second, in two digits."""

        def render(self, task: Task) -> Text:
            return Text(f"{float(f'{task.speed:.2g}'):,.0f} rows/s" if task.speed else "")

    named = TextColumn("{task.description}")
    with _bar(named, BarColumn(bar_width=None), Rate(), TimeRemainingColumn()) as bar:
        task = bar.add_task(what, total=n_rows)
        yield lambda n_done: bar.update(task, advance=n_done)


@contextmanager
def image_progress(
    console: Console, weights: Mapping[str, int]
) -> Iterator[tuple[Callable[[ImageOutcome], None], Callable[[str, float], None] | None]]:
    """Show how far a batch is, of which each image is a part of some weight, resumed ones none.

    Yielded are what takes the outcome of each image as it is done, and what takes the name of an
    image and the share of it that is done, from any thread; None where that is not shown.
    """
    if not console.shows_progress:
        yield (
            lambda one: say_line(f"failed: {one.reason}") if one.status == "failed" else None,
            None,
        )
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.fields[n_done]} of " + str(len(weights))),
        progress.BarColumn(bar_width=None),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
    )
    left, done = dict(weights), dict.fromkeys(weights, 0.0)
    n_done = n_failed = 0
    with _bar(*columns) as bar:
        task = bar.add_task("", total=sum(left.values()), n_done=0)

        def update() -> None:
            worked = sum(share * left[name] for name, share in done.items())
            bar.update(task, completed=worked, total=sum(left.values()), n_done=n_done)

        def within(name: str, share: float) -> None:
            # A file that has come since the batch was planned is no part of the bar.
            if name in done:
                done[name] = max(done[name], share)
                update()

        def show(outcome: ImageOutcome) -> None:
            nonlocal n_done, n_failed
            if outcome.status == "failed":
                n_failed += 1
                if n_failed <= MOST_FAILURES:
                    say_line(f"failed: {outcome.reason}")
                elif n_failed == MOST_FAILURES + 1:
                    say_line("More failures are listed in the report.")
            n_done += 1
            if outcome.resumed and outcome.name in left:
                left[outcome.name] = 0
            within(outcome.name, 1.0)

        yield show, within


def _bar(*columns: ProgressColumn) -> Progress:
    """Start a bar on stderr, of which nothing remains; what is said meanwhile stands above it."""
    from rich import progress
    from rich.console import Console as Terminal

    return progress.Progress(
        progress.SpinnerColumn(),
        *columns,
        console=Terminal(stderr=True, highlight=False),
        transient=True,
        speed_estimate_period=SPEED_PERIOD,
    )
