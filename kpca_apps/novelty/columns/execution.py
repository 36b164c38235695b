"""Who works on the parts of a table, and how progress is shown: the one context of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import tee
from typing import Any, TypeVar

from kpca_apps.system.workers import Kept, Workers

Result = TypeVar("Result")
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def _silent(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show no progress."""
    yield lambda n_rows: None


@dataclass(frozen=True)
class Execution:
    """Who works on a table that is read in parts, and how progress is shown.

    Attributes
    ----------
    workers : Workers
        Threads of this process by default.
    progress : callable
        ``progress(what, n_rows)`` is entered for a pass and gives a function that takes the
        number of rows done since it was last called.
    """

    workers: Workers = field(default_factory=Workers)
    progress: Progress = _silent

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Iterable[Any],
        n_rows: int,
        *shared: object,
        kept: Kept | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order, showing how far it is.

        A task is about the rows of one part, `n_rows` in all; `kept`: see `Workers.map_partitions`.
        """
        taken, done = tee(tasks)
        results = self.workers.map_partitions(function, taken, *shared, kept=kept)
        with self.progress(what, n_rows) as advance:
            for result, task in zip(results, done, strict=True):
                yield result
                advance(task.n_rows)
