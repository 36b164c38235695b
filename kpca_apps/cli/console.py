"""Output of the commands: messages on stderr, data on stdout, control characters escaped."""

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
SPEED_PERIOD = 300.0  # seconds over which speed is averaged


@dataclass(frozen=True)
class Console:
    """Output of a command; `quiet` suppresses everything except errors and data."""

    quiet: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown: on a terminal, unless `quiet`."""
        return not self.quiet and sys.stderr.isatty()

    def say(self, text: str = "") -> None:
        """Write a paragraph to stderr, wrapped to the terminal."""
        if not self.quiet:
            _write("".join(f"{line}\n" for line in wrapped(text) or [""]))

    def lines(self, lines: list[str]) -> None:
        """Write lines to stderr, cut to the width of the terminal instead of wrapped."""
        if not self.quiet:
            _write("".join(f"{one_line(line, terminal_width())}\n" for line in lines))

    def data(self, text: str) -> None:
        """Write data to stdout; on a terminal, control characters are escaped."""
        lines = text.rstrip("\n").split("\n")
        shown = map(visible, lines) if sys.stdout.isatty() else lines
        sys.stdout.writelines(f"{line}\n" for line in shown)

    def data_path(self, path: PurePath | str) -> None:
        """Write a path to stdout; on a terminal, as one escaped line."""
        self.data(one_line(str(path), MAX_LINE) if sys.stdout.isatty() else str(path))

    def data_lines(self, lines: list[str]) -> None:
        """Write lines for people to stdout; control characters are escaped."""
        sys.stdout.writelines(f"{one_line(line, MAX_LINE)}\n" for line in lines)

    def data_json(self, document: Document, content: Mapping[str, Any]) -> None:
        """Write a JSON document to stdout; NaN is ``null``, infinity ``"inf"``."""
        from kpca_apps.report.result_json import to_json

        self.data(to_json(document, content))

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """On a terminal, show the elapsed time while the block runs."""
        if not self.shows_progress:
            yield
            return
        from rich.progress import TextColumn, TimeElapsedColumn

        bar = _bar(TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        bar.add_task(one_line(text, terminal_width() - 12), total=None)
        with suppress(OSError):  # if the terminal was closed, the work continues
            bar.start()
        try:
            yield
        finally:
            with suppress(OSError):
                bar.stop()


def say_error(message: str) -> None:
    """Write an error to stderr in one line."""
    say_line(f"error: {without_passwords(' '.join(message.split()))}")


def say_line(message: str) -> None:
    """Write one line to stderr; control characters are escaped."""
    _write(f"{one_line(message, MAX_LINE)}\n")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # Python would flush the buffer again at exit, and fail again.
        with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def column_lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align rows of cells in columns.

    >>> column_lines([("file", "sigma"), ("a.png", "3")])
    ['file   sigma', 'a.png  3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def terminal_width() -> int:
    """Return the largest length of a line, from 40 to 100 characters."""
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, 100))


def wrapped(text: str, indent: str = "", hanging: str = "") -> list[str]:
    """Escape a text and wrap it to the terminal, with `hanging` before all lines but the first."""
    shown, width = one_line(text, MAX_LINE), terminal_width()
    return textwrap.wrap(
        shown,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    )


@contextmanager
def row_progress(console: Console, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show progress; yield a function to call with the number of new rows."""
    if not console.shows_progress:
        yield lambda n_done: None
        return
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Number of rows per second, with two digits."""

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
    """Show the finished share of a batch, by `weights` of images.

    Yields a function to call with the outcome of each finished image, and another to call with an
    image's name and finished share (None if not on a terminal).
    """
    if not console.shows_progress:
        yield lambda o: say_line(f"failed: {o.reason}") if o.status == "failed" else None, None
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
    weight, done = dict(weights), dict.fromkeys(weights, 0.0)
    n_done = n_failed = 0
    with _bar(*columns) as bar:
        task = bar.add_task("", total=sum(weight.values()), n_done=0)

        def within(name: str, share: float) -> None:
            if name in done:  # a file added after planning has no weight
                done[name] = max(done[name], share)
                worked = sum(share * weight[name] for name, share in done.items())
                bar.update(task, completed=worked, total=sum(weight.values()), n_done=n_done)

        def show(outcome: ImageOutcome) -> None:
            nonlocal n_done, n_failed
            if outcome.status == "failed":
                n_failed += 1
                if n_failed <= MOST_FAILURES:
                    say_line(f"failed: {outcome.reason}")
                elif n_failed == MOST_FAILURES + 1:
                    say_line("More failures are listed in the report.")
            n_done += 1
            if outcome.resumed and outcome.name in weight:
                weight[outcome.name] = 0
            within(outcome.name, 1.0)

        yield show, within


def _bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on stderr that disappears at the end."""
    from rich import progress
    from rich.console import Console as Terminal

    return progress.Progress(
        progress.SpinnerColumn(),
        *columns,
        console=Terminal(stderr=True, highlight=False),
        transient=True,
        speed_estimate_period=SPEED_PERIOD,
    )
