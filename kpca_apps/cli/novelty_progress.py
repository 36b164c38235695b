"""Who works on a large table, and how far it is: a bar with rows a second for every pass."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpca_apps.cli.console import Console
from kpca_apps.errors import ConfigError

if TYPE_CHECKING:
    from kpca_apps.cli.clock import Clock
    from kpca_apps.novelty.parted_rows import Execution
    from kpca_apps.novelty.table_rows import AnyTable

__all__ = ["executing", "rate_text", "working"]

# Memory that a worker takes while it reads a part of a table and works on it.
A_WORKER = 400_000_000


@contextmanager
def executing(
    console: Console, params: Mapping[str, Any], clock: Clock | None = None
) -> Iterator[Execution]:
    """Gather who was asked to work; they are let go when the block ends.

    Parameters
    ----------
    console : Console
        Shows how far a pass is.
    params : mapping
        Of the command: ``jobs``, ``workers`` and ``scheduler``, where it has them.
    clock : Clock, optional
        Takes the time of each pass.

    Raises
    ------
    ConfigError
        If they contradict each other, or Dask is not installed.
    RefusedError
        If the scheduler does not answer.
    """
    from kpca_apps.engine.partitions import Workers
    from kpca_apps.novelty.parted_rows import Execution

    kind, jobs, scheduler = _asked(params)
    if kind == "dask":
        # What its machinery has to say in passing is for those who run a cluster.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    else:
        jobs = jobs or _worthwhile()
    with Workers(kind, n_workers=jobs, scheduler=scheduler) as workers:
        yield Execution(workers, _Passes(console, clock).show)


def _asked(params: Mapping[str, Any]) -> tuple[Any, int | None, str | None]:
    """Return the executor, the number of workers and the scheduler."""
    asked, jobs = params.get("workers"), params.get("jobs")
    scheduler = params.get("scheduler")
    kind = "threads" if asked is None else str(asked.value)
    if scheduler is None:
        return kind, jobs, None
    if asked is not None and kind != "dask":
        raise ConfigError(
            f"--scheduler is the address of a Dask cluster, and --workers {kind} are on this "
            "machine: leave one of them out"
        )
    if jobs is not None:
        raise ConfigError(
            "--jobs sets the number of workers on this machine, and the cluster at --scheduler "
            "has its own: leave one of them out"
        )
    return "dask", None, scheduler


def _worthwhile() -> int:
    """Return how many workers the cores and the memory of this machine allow."""
    from joblib import cpu_count

    from kpca_apps.memory import available_bytes

    return max(1, min(int(cpu_count()), available_bytes() // A_WORKER))


def working(console: Console, text: str, *tables: AnyTable | None) -> AbstractContextManager[None]:
    """Show that work is going on; for tables read in parts, their passes show it themselves."""
    from kpca_apps.files.tables.table import PartedTable

    if any(isinstance(table, PartedTable) for table in tables):
        return nullcontext()
    return console.stage(text)


def rate_text(n_rows: int, seconds: float) -> str:
    """Write how many rows are done a second.

    Examples
    --------
    >>> rate_text(3_000_000, 2.0), rate_text(45_000, 1.0), rate_text(0, 0.0)
    ('1.5 million rows/s', '45,000 rows/s', '')
    """
    if n_rows <= 0 or seconds <= 0:
        return ""
    rate = n_rows / seconds
    if rate >= 1e6:
        return f"{rate / 1e6:.1f} million rows/s"
    digits = 10 ** max(len(str(int(rate))) - 2, 0)
    return f"{int(rate // digits * digits):,} rows/s"


@dataclass
class _Passes:
    """The passes over a table, one after the other."""

    console: Console
    clock: Clock | None
    n_passes: int = 0

    @contextmanager
    def show(self, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        """Show how far one pass is while the block runs; nothing of it remains."""
        self.n_passes += 1
        began = time.perf_counter()
        with self._bar(what, n_rows) as advance:
            yield advance
        if self.clock is not None:
            seconds = round(time.perf_counter() - began, 3)
            self.clock.seconds[f"pass {self.n_passes}, {what.lower()}"] = seconds

    @contextmanager
    def _bar(self, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        if self.console.quiet or not sys.stderr.isatty():
            yield lambda n_done: None
            return
        from rich import progress
        from rich.console import Console as Terminal

        columns = (
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
        )
        terminal = Terminal(stderr=True, highlight=False)
        with progress.Progress(*columns, console=terminal, transient=True) as bar:
            task = bar.add_task(what, total=n_rows, rate="")
            began, n_all = time.monotonic(), 0

            def advance(n_done: int) -> None:
                nonlocal n_all
                n_all += n_done
                bar.update(task, advance=n_done, rate=rate_text(n_all, time.monotonic() - began))

            yield advance
