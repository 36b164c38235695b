"""One seam for parallel work: the same function over parts, here or on other machines.

Four executors do the same work: one after the other, threads, processes, and Dask. What a part is
and what is made of it does not depend on the executor, and results are combined in one order: so
answers agree, to the bit for any number of threads.

Examples
--------
>>> from operator import add
>>> import numpy as np
>>> rows = np.arange(10.0).reshape(5, 2)
>>> with Workers("threads", n_workers=2) as workers:
...     parts = row_parts(len(rows), 2)
...     sums = workers.map_partitions(lambda part: rows[part.start : part.stop].sum(), parts)
...     float(tree_reduce(add, sums))
45.0
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from kpca_apps.engine.blocks import one_blas_thread
from kpca_apps.errors import ConfigError, KpcaError

__all__ = ["EXECUTORS", "Executor", "RowPart", "Workers", "row_parts", "tree_reduce"]

Part = TypeVar("Part")
Result = TypeVar("Result")
Executor = Literal["serial", "threads", "processes", "dask"]

EXECUTORS: tuple[Executor, ...] = ("serial", "threads", "processes", "dask")

ANSWER_SECONDS = 20.0
"""How long a scheduler has to answer."""

RETRIES = 2
"""How often a part is tried again where its worker was lost."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RowPart:
    """Rows ``start`` to ``stop - 1`` of all rows, whoever works on them."""

    number: int
    start: int
    stop: int


def row_parts(n: int, rows: int) -> list[RowPart]:
    """Cut ``n`` rows at multiples of ``rows``, whatever the number of workers.

    Examples
    --------
    >>> [(part.start, part.stop) for part in row_parts(5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    if rows < 1:
        raise ValueError(f"A part needs at least one row, got {rows}.")
    starts = range(0, n, rows)
    return [RowPart(k, start, min(start + rows, n)) for k, start in enumerate(starts)]


def tree_reduce(combine: Callable[[Result, Result], Result], results: Iterable[Result]) -> Result:
    """Combine results by pairs of neighbours, in one order whatever the executor.

    At most log2 of their number are held: an iterator may be given.

    Raises
    ------
    ValueError
        If there is no result.

    Examples
    --------
    >>> tree_reduce(lambda a, b: f"({a}{b})", "abcde")
    '(((ab)(cd))e)'
    """
    waiting: list[tuple[int, Result]] = []
    for result in results:
        level = 0
        while waiting and waiting[-1][0] == level:
            result, level = combine(waiting.pop()[1], result), level + 1
        waiting.append((level, result))
    if not waiting:
        raise ValueError("There is nothing to combine.")
    total = waiting.pop()[1]
    while waiting:
        total = combine(waiting.pop()[1], total)
    return total


class Workers(AbstractContextManager["Workers"]):
    """Those who do the work, from the first part to the last.

    Parameters
    ----------
    executor : {"serial", "threads", "processes", "dask"}
        Threads suffice for one machine: the work is linear algebra, which runs outside the
        interpreter's lock. Processes are for parts whose reading is not.
    n_workers : int, optional
        Threads or processes; None: one thread, or what joblib's context says. With "dask" and no
        ``scheduler``, workers of a cluster on this machine (one for each core if None).
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``; only with "dask".

    Raises
    ------
    ConfigError
        If Dask is not installed, or a scheduler was given to another executor.
    KpcaError
        If the scheduler does not answer.
    """

    def __init__(
        self,
        executor: Executor = "threads",
        *,
        n_workers: int | None = None,
        scheduler: str | None = None,
    ) -> None:
        if executor not in EXECUTORS:
            raise ConfigError(f"executor must be one of {', '.join(EXECUTORS)}, got {executor!r}.")
        if scheduler is not None and executor != "dask":
            raise ConfigError(f"A scheduler is for the executor dask, not for {executor}.")
        self.executor, self.n_workers = executor, n_workers
        self._closing: list[Any] = []
        self._client: Any = None
        if executor == "dask":
            self._client = _dask_client(n_workers, scheduler, self._closing)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for opened in reversed(self._closing):
            with suppress(Exception):
                opened.close()

    def map_partitions(
        self, function: Callable[..., Result], parts: Sequence[Part], *shared: Any
    ) -> Iterator[Result]:
        """Yield ``function(part, *shared)`` of each part, in the order of the parts.

        Inside, linear algebra is held to one thread. For processes and Dask, function and parts
        are sent: parts are best told by path and rows, and read where the work is done.

        Parameters
        ----------
        function : callable
        parts : sequence
        *shared
            The same for every part, such as a model; sent to each worker once.

        Raises
        ------
        KpcaError
            If a part fails: naming its number and what was wrong. Errors of the toolkit keep
            their kind.
        """
        task = _Task(function)
        if self._client is not None:
            yield from self._on_dask(task, parts, shared)
        elif self.executor == "serial":
            for number, part in enumerate(parts):
                yield task(number, part, *shared)
        else:
            how: dict[str, Any] = {"return_as": "generator", "n_jobs": self.n_workers}
            how |= {"backend": "loky"} if self.executor == "processes" else {"require": "sharedmem"}
            yield from Parallel(**how)(
                delayed(task)(number, part, *shared) for number, part in enumerate(parts)
            )

    def _on_dask(
        self, task: _Task[Result], parts: Sequence[Part], shared: tuple[Any, ...]
    ) -> Iterator[Result]:
        killed = importlib.import_module("distributed").KilledWorker
        sent = [self._client.scatter(thing, broadcast=True) for thing in shared]
        futures = [
            self._client.submit(task, number, part, *sent, pure=False, retries=RETRIES)
            for number, part in enumerate(parts)
        ]
        # Results are let go of as they are used, so that they do not pile up.
        for number in range(len(futures)):
            try:
                result = futures[number].result()
            except killed as error:
                raise KpcaError(
                    f"Part {number + 1} of {len(parts)} ended its worker each time it was tried: "
                    "give the workers more memory, or cut smaller parts."
                ) from error
            futures[number] = None
            yield result

    @property
    def width(self) -> int:
        """Number of parts worked on at once."""
        if self._client is not None:
            return max(len(self._client.scheduler_info()["workers"]), 1)
        return 1 if self.executor == "serial" else int(effective_n_jobs(self.n_workers))


class _Task(Generic[Result]):
    """A function of one part, with linear algebra at one thread and errors that name the part."""

    def __init__(self, function: Callable[..., Result]) -> None:
        self.function = function

    def __call__(self, number: int, part: Any, *shared: Any) -> Result:
        try:
            with one_blas_thread():
                return self.function(part, *shared)
        except KpcaError:
            raise
        except Exception as error:
            raise KpcaError(f"Part {number + 1} ({part}) failed: {error}") from error


def _dask_client(n_workers: int | None, scheduler: str | None, closing: list[Any]) -> Any:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise ConfigError(
            "Dask is not installed: pip install 'kpca-apps[dask]', or choose another executor."
        ) from error
    try:
        if scheduler is None:
            cluster = distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            )
            closing.append(cluster)
            client = distributed.Client(cluster, timeout=ANSWER_SECONDS)
        else:
            client = distributed.Client(scheduler, timeout=ANSWER_SECONDS)
    except (OSError, TimeoutError) as error:
        raise KpcaError(
            f"The scheduler {scheduler or 'of this machine'} does not answer: is it running, and "
            "is its address right?"
        ) from error
    closing.append(client)
    _log.info("dask: %s", client)
    return client
