"""How far a run is: one bar on a terminal, nothing elsewhere; failures are said as they happen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kpca_apps.cli.console import Console, say_line

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task
    from rich.text import Text

    from kpca_apps.denoise.result import ImageOutcome

__all__ = ["MOST_FAILURES", "image_progress", "row_progress", "say_failure"]

MOST_FAILURES = 5
MEMORY = 300.0  # seconds back that the remaining time is reckoned from


def say_failure(reason: str) -> None:
    """Say in one line why an image failed, even where only errors are said."""
    say_line(f"failed: {reason}")


@contextmanager
def row_progress(console: Console, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show how far a pass over rows is; what is yielded takes how many more are done."""
    if not _is_shown(console):
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
    if not _is_shown(console):
        yield (
            lambda outcome: say_failure(outcome.reason) if outcome.status == "failed" else None,
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
                    say_failure(outcome.reason)
                elif n_failed == MOST_FAILURES + 1:
                    say_line("More failures are listed in the report.")
            n_done += 1
            if outcome.resumed and outcome.name in left:
                left[outcome.name] = 0
            within(outcome.name, 1.0)

        yield show, within


def _is_shown(console: Console) -> bool:
    return not console.quiet and sys.stderr.isatty()


def _bar(*columns: ProgressColumn) -> Progress:
    """Start a bar on stderr, of which nothing remains; what is said meanwhile stands above it."""
    from rich import progress
    from rich.console import Console as Terminal

    terminal = Terminal(stderr=True, highlight=False)
    return progress.Progress(
        progress.SpinnerColumn(),
        *columns,
        console=terminal,
        transient=True,
        speed_estimate_period=MEMORY,
    )
