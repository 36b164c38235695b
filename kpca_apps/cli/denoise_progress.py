"""How far a batch is: a bar with the remaining time on a terminal, failures as they happen."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kpca_apps.cli.console import MAX_LINE, Console, say_line
from kpca_apps.files.names import one_line

if TYPE_CHECKING:
    from rich.progress import Progress

    from kpca_apps.denoise.result import ImageOutcome

__all__ = ["count_samples", "remaining", "say_failure", "share_processors", "showing_progress"]

Show = Callable[["ImageOutcome"], None]
Within = Callable[[str, float], None]

MOST_FAILURES = 5
# Bytes a worker takes: for itself, for the strip it works on, and in buffers of the image's size.
_BASE, _A_SAMPLE, _A_SAMPLE_OF_STRIP = 300_000_000, 30, 60
# Values denoised in the time a worker takes to start.
_START_UP = 100_000


def count_samples(path: Path) -> int:
    """Return the number of values in an image file, by its header; else a guess by its size."""
    from PIL import Image

    if not path.is_file():
        # A pipe would never end; what it is, is said when its turn comes.
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                pixels = image.width * image.height * getattr(image, "n_frames", 1)
                return pixels * min(len(image.getbands()), 3)
    except Exception:
        # Whatever is wrong with the file is said when its turn comes.
        return path.stat().st_size


def share_processors(jobs: int, samples: list[int], available: int) -> tuple[int, int]:
    """Return how many worker processes to take, and how many threads for each.

    Parameters
    ----------
    jobs : int
        Processors to use.
    samples : list of int
        Values in each image.
    available : int
        Bytes of memory.

    Examples
    --------
    >>> share_processors(8, [250_000] * 100, 64 * 10**9)
    (8, 1)
    >>> share_processors(8, [250_000] * 3, 64 * 10**9)
    (3, 2)
    >>> share_processors(8, [36_000_000] * 100, 8 * 10**9)
    (3, 2)
    >>> share_processors(8, [1_000] * 20, 64 * 10**9)
    (1, 8)
    """
    from kpca_apps.denoise.passes import STRIP_SAMPLES

    largest = max(samples, default=0)
    each = _BASE + _A_SAMPLE * largest + _A_SAMPLE_OF_STRIP * min(largest, STRIP_SAMPLES)
    worthwhile = 1 + sum(samples) // _START_UP
    workers = max(1, min(jobs, len(samples), worthwhile, available // each))
    return workers, max(1, jobs // workers)


def remaining(left: int, done: int, seconds: float) -> str:
    """Say how long it will take from how long it took.

    Examples
    --------
    >>> remaining(300, 100, 20.0), remaining(10, 0, 5.0)
    ('1:00 left', '')
    """
    if done <= 0 or left <= 0:
        return ""
    minutes, rest = divmod(round(seconds * left / done), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"


def say_failure(reason: str) -> None:
    """Say in one line why an image failed, even where only errors are said."""
    say_line(f"failed: {reason}")


def _say_if_failed(outcome: ImageOutcome) -> None:
    if outcome.status == "failed":
        say_failure(outcome.reason)


@contextmanager
def showing_progress(
    console: Console, weights: Mapping[str, int]
) -> Iterator[tuple[Show, Within | None]]:
    """Show how far a batch is while the block runs.

    Parameters
    ----------
    console : Console
    weights : mapping of str to int
        What each image is of the work, by name.

    Yields
    ------
    show : callable
        Takes the outcome of each image as it is done.
    within : callable or None
        Takes the name of an image that is worked on and the share of it that is done; None where
        that is not shown.
    """
    if console.quiet or not sys.stderr.isatty():
        yield _say_if_failed, None
        return
    from rich import progress
    from rich.console import Console as Terminal

    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.fields[count]}"),
        progress.BarColumn(bar_width=None),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[left]}"),
    )
    terminal = Terminal(stderr=True, highlight=False)
    with progress.Progress(*columns, console=terminal, transient=True) as bar:
        shown = _Bar(bar, weights)
        yield shown.show, shown.within


class _Bar:
    """A bar whose length is the work, of which resumed images are none."""

    def __init__(self, bar: Progress, weights: Mapping[str, int]) -> None:
        self.bar, self.weights = bar, dict(weights)
        self.n_all, self.n_done, self.n_failed = len(weights), 0, 0
        self.all = sum(weights.values())
        self.worked, self.resumed = 0, 0
        self.under_way: dict[str, float] = {}
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.task = bar.add_task("", total=self.all or 1, count=f"0 of {self.n_all}", left="")

    def show(self, outcome: ImageOutcome) -> None:
        weight = self.weights.get(outcome.name, 0)
        if outcome.status == "failed":
            self._show_failure(outcome)
        with self.lock:
            self.n_done += 1
            self.under_way.pop(outcome.name, None)
            # What comes late of an image that is done counts no more.
            self.weights[outcome.name] = 0
            if outcome.resumed:
                self.began = time.monotonic() if not self.worked else self.began
                self.resumed += weight
            else:
                self.worked += weight
            self._update()

    def within(self, name: str, share: float) -> None:
        with self.lock:
            self.under_way[name] = share
            self._update()

    def _update(self) -> None:
        partly = sum(share * self.weights[name] for name, share in self.under_way.items())
        worked = self.worked + round(partly)
        self.bar.update(
            self.task,
            completed=self.resumed + worked,
            count=f"{self.n_done} of {self.n_all}",
            left=remaining(self.all - self.resumed - worked, worked, time.monotonic() - self.began),
        )

    def _show_failure(self, outcome: ImageOutcome) -> None:
        from rich.text import Text

        self.n_failed += 1
        if self.n_failed <= MOST_FAILURES:
            self.bar.console.print(Text(one_line(f"failed: {outcome.reason}", MAX_LINE)))
        elif self.n_failed == MOST_FAILURES + 1:
            self.bar.console.print("More failures are listed in the report.")
