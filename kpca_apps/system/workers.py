"""Parallel work: one function over parts, by threads, processes or a Dask cluster.

Parts do not depend on the executor, and results are combined in a fixed order. So all executors
agree; for threads, to the last bit with any number of threads.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from joblib import effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps

from kpca_apps.errors import ConfigError, KpcaError, RefusedError, StoppedError, UnreachableError
from kpca_apps.options import check_jobs
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.dask_client import dask_client
from kpca_apps.system.files.temporary import private_path
from kpca_apps.system.interrupts import OF_TERMINALS, interrupts_held

Part = TypeVar("Part")
Result = TypeVar("Result")
Executor = Literal["serial", "threads", "processes", "dask"]

EXECUTORS: tuple[Executor, ...] = ("serial", "threads", "processes", "dask")
RETRIES = 2  # number of retries of a part whose worker was lost
IN_FLIGHT = 3  # number of parts submitted ahead per worker
# Minimum bytes of an object that is sent once per worker instead of with each part.
LEAST_SPOOLED = 1_000_000
# Maximum bytes of a part sent within its task; a larger part is sent ahead, in two round trips.
MOST_SENT = 4_000_000
WIDTH_SECONDS = 1.0  # seconds between queries of how many parts a cluster can process at once
WATCH_SECONDS = 0.2  # seconds between a worker's checks whether its parent process is alive

_log = logging.getLogger(__name__)


def tree_reduce(combine: Callable[[Result, Result], Result], results: Iterable[Result]) -> Result:
    """Combine neighbouring results pairwise, in an order that does not depend on the executor.

    `results` may be an iterator; at most log2(n) combined results are in memory. Raises ValueError
    if there are none.
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
    """Workers that process parts by one executor, until they are closed.

    Parameters
    ----------
    executor : {"serial", "threads", "processes", "dask"}
        How parts run. Threads suffice on one machine if most of the work is linear algebra, which
        releases the GIL; processes help if reading a part holds the GIL.
    n_workers : int, optional
        Number of threads or processes; None for one, or for the number in joblib's context. With
        "dask" and no ``scheduler``, the workers of a local cluster (None for one per core).
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``, or a client, which is not
        closed. Only with "dask".

    Raises
    ------
    ConfigError
        If Dask is not installed, or another executor is given a scheduler.
    RefusedError
        If the scheduler does not answer or has no workers.

    Examples
    --------
    >>> with Workers("threads", n_workers=2) as workers:
    ...     list(workers.map_partitions(len, [[1, 2], [3]]))
    [2, 1]
    """

    def __init__(
        self,
        executor: Executor = "threads",
        *,
        n_workers: int | None = None,
        scheduler: str | Any | None = None,
    ) -> None:
        if executor not in EXECUTORS:
            raise ConfigError(f"executor must be one of {', '.join(EXECUTORS)}, got {executor!r}.")
        if scheduler is not None and executor != "dask":
            raise ConfigError(f"A scheduler is for the executor dask, not for {executor}.")
        if isinstance(scheduler, str) and not scheduler.strip():
            raise ConfigError("The address of the scheduler is empty: give one, or leave it out.")
        check_jobs("n_workers", n_workers)
        self.executor, self.n_workers = executor, n_workers
        self._opened = ExitStack()
        self._pool: Any = None
        self._client: Any = None
        if executor == "dask":
            try:
                self._client = dask_client(n_workers, scheduler, self._opened)
            except BaseException:
                self._close_cluster()
                raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A second interrupt would leave locks that block the shutdown of the processes.
        with interrupts_held():
            self._close_pool(is_stopped=kind is not None)
            self._close_cluster()

    def _close_cluster(self) -> None:
        # Closing a failed cluster may fail.
        with suppress(Exception):
            self._opened.close()

    def keep(self, function: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> Kept:
        """Return lazily computed values ``function(part, *shared)`` that Dask's workers cache.

        `map_partitions` computes the values on first use. Workers cache them as long as the
        returned object lives.

        Parameters
        ----------
        function, parts, *shared
            As for `map_partitions`.

        Returns
        -------
        Kept
            Handle of the cached values, for ``kept`` of `map_partitions`.
        """
        return Kept(self, _Task(function), list(parts), shared)

    def map_partitions(
        self,
        function: Callable[..., Result],
        parts: Iterable[Part],
        *shared: Any,
        kept: Kept | None = None,
        ordered: bool = True,
        lost: Callable[[Part], Result] | None = None,
        known: Callable[[Part], Result | None] | None = None,
        carried: Callable[[Part], Any] | None = None,
        always_carried: bool = False,
    ) -> Iterator[Result]:
        """Yield ``function(part, *shared)`` for each part.

        Linear algebra runs in one thread. Function and parts are pickled for processes and Dask, so
        a part should name a file and rows for the worker to read. Parts of lost workers are
        submitted again. Workers that join later get parts, too.

        Parameters
        ----------
        function : callable
            Function of one part, its cached value if `kept` is given, and the shared arguments.
        parts : iterable
            Arguments of the calls; the iterable is consumed as needed.
        *shared
            Further arguments, the same in all calls, such as a model. Each worker receives a large
            argument once.
        kept : Kept, optional
            Values cached by the workers for these parts, passed to the function after its part.
        ordered : bool
            Whether results come in the order of the parts rather than in the order of completion.
        lost : callable, optional
            Returns the result of a part that killed its worker on every attempt. By default, such a
            part raises an error.
        known : callable, optional
            Returns the result of a part if it is already known, else None.
        carried : callable, optional
            Returns a part together with its data, for Dask. Used for all parts submitted after a
            worker could not read one (`UnreachableError`).
        always_carried : bool
            Whether to use `carried` from the start.

        Raises
        ------
        KpcaError
            If a part fails; the message has its number and the reason. Errors of the toolkit keep
            their type.
        """
        task = _Task(function)
        if self.executor == "serial":
            for number, part in enumerate(parts):
                result = None if known is None else known(part)
                yield task(number, part, *shared) if result is None else result
        else:
            flight = _Flight(
                self, task, shared, kept, ordered, lost, known, carried, always_carried
            )
            yield from flight.results(parts)

    def _submit(
        self, task: _Task[Any], number: int, part: object, *sent: Any, most: int = MOST_SENT
    ) -> Any:
        if self.executor == "threads":
            self._pool = self._pool or ThreadPoolExecutor(max_workers=self.width)
            return self._pool.submit(task, number, part, *sent)
        run = _unpacking()
        if self._client is not None:
            # Use Dask's pickler: loky's `dumps` (below) copies a table of reducers for each part.
            dask_pickle = importlib.import_module("distributed.protocol.pickle")
            packed: Any = dask_pickle.dumps((task, number, part))
            if len(packed) >= most:
                # The scheduler frees scattered data after use, but keeps a task's arguments longer.
                with _reached(CancelledError):
                    packed = self._client.scatter(packed, hash=False)
            return self._client.submit(run, packed, *sent, pure=False, retries=RETRIES)
        packed = dumps((task, number, part, *sent))
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                max_workers=self.width, initializer=begin_process, initargs=(os.getpid(),)
            )
            if sys.platform != "win32":
                # Python 3.11 does not block interrupts while it starts the resource tracker.
                resource_tracker.ensure_running()
            with interrupts_held():
                return self._pool.submit(run, packed)
        return self._pool.submit(run, packed)

    def _send_shared(self, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._client is not None:
            scatter = partial(self._client.scatter, broadcast=True, hash=False)
            with _reached(CancelledError):
                return tuple(map(scatter, shared))
        return tuple(map(_spooled, shared)) if self.executor == "processes" else shared

    def _close_pool(self, *, is_stopped: bool = False) -> None:
        """Close the threads or processes; the next submitted part starts new ones.

        Running parts are completed, except in processes if ``is_stopped``.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self.executor == "threads":
            pool.shutdown(wait=True, cancel_futures=True)
            return
        # End the processes here, before the usual shutdown: the pool's own option to kill processes
        # raises KeyError for parts that were just submitted.
        for process in list(pool._processes.values()) if is_stopped else ():
            process.terminate()
        pool.shutdown(wait=True)

    @property
    def width(self) -> int:
        """Number of parts processed at the same time."""
        if self._client is not None:
            with _reached(Exception):
                return max(int(sum(self._client.nthreads().values())), 1)
        return 1 if self.executor == "serial" else int(effective_n_jobs(self.n_workers))


def on_dask(executor: Executor | None, scheduler: object) -> bool:
    """Return whether options select the workers of a Dask cluster."""
    return executor == "dask" or scheduler is not None


def workers_for(
    executor: Executor | None, n_workers: int | None, scheduler: str | Any | None
) -> Workers:
    """Return the workers that options select, threads by default; ConfigError if they conflict."""
    check_jobs("jobs", n_workers)
    if scheduler is not None:
        if executor not in (None, "dask"):
            raise ConfigError(
                f"--scheduler is the address of a Dask cluster, and --workers {executor} are on "
                "this machine: leave one of them out"
            )
        if n_workers is not None:
            raise ConfigError(
                "--jobs sets the number of workers on this machine, and the cluster at --scheduler "
                "has its own: leave one of them out"
            )
        executor = "dask"
    return Workers(executor or "threads", n_workers=n_workers, scheduler=scheduler)


def _unpacking() -> Callable[..., Any]:
    """Return a function that unpickles and runs a task, and needs only the standard library.

    If Dask itself failed to unpickle a task, it would wait forever; a pool would lose a worker.
    """

    def run(packed: bytes, *sent: Any) -> Any:
        import pickle

        task, *parts = pickle.loads(packed)
        return task(*parts, *sent)

    return run


@contextmanager
def _reached(*others: type[BaseException]) -> Iterator[None]:
    """Say that a cluster is not reached, or cannot unpickle a task; leave `others` as they are."""
    try:
        yield
    except KpcaError:
        raise
    except OSError as error:
        raise StoppedError(
            "The cluster cannot be reached or has no workers: start some (dask worker), and run "
            "the same command again."
        ) from error
    except others:
        raise
    except Exception as error:
        raise RefusedError(
            f"The workers cannot read what they are sent ({error!r:.150}): each of them needs "
            "kpca-apps and the modules of this program, in the versions used here."
        ) from error


class _Spooled:
    """A large object in a file, which each process reads once, on unpickling."""

    def __init__(self, content: memoryview) -> None:
        self.file = private_path("kpca-shared")
        self.file.path.write_bytes(content)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_spooled, (self.file.path,)


@lru_cache(maxsize=2)
def _read_spooled(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


def _spooled(thing: object) -> object:
    content = dumps(thing)
    if len(content) >= LEAST_SPOOLED:
        with suppress(OSError):  # if the disk is full, send the object with each part
            return _Spooled(content)
    return thing


def begin_process(owner: int) -> None:
    """Ignore the terminal's signals, and end this process when its parent ends."""
    for number in OF_TERMINALS:
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Kept:
    """Futures of the parts' values, which Dask's workers compute and keep in memory."""

    def __init__(
        self, workers: Workers, task: _Task[Any], parts: list[Any], shared: tuple[Any, ...]
    ) -> None:
        self._workers, self._task, self._parts, self._shared = workers, task, parts, shared
        self._futures: list[Any] = [None] * len(parts)
        self._sent: tuple[Any, ...] | None = None
        self._carried = set[int]()  # indices of parts sent with their data, not its address

    def future(self, number: int, carried: Callable[[Any], Any] | None) -> Any:
        """Return the future of a part's value; submit the part if the future is missing or lost."""
        future, part = self._futures[number], self._parts[number]
        # With `carried`, workers cannot read the data, so send a pending part again with its data.
        good = (
            {"finished", "pending"} if carried is None or number in self._carried else {"finished"}
        )
        if future is None or future.status not in good:
            if self._sent is None:
                self._sent = self._workers._send_shared(self._shared)
            if carried is not None:
                part = carried(part)
                self._carried.add(number)
            sent, most = self._sent, LEAST_SPOOLED  # keep tasks small, as the scheduler stores them
            future = self._workers._submit(self._task, number, part, *sent, most=most)
            self._futures[number] = future
        return future

    def renew(self) -> None:
        """Send the shared arguments again with the next part: workers that had them may be lost."""
        self._sent = None


@dataclass
class _Flight(Generic[Part, Result]):
    """The submitted parts; parts that are lost with a worker are submitted again."""

    workers: Workers
    task: _Task[Result]
    shared: tuple[Any, ...]
    kept: Kept | None = None
    ordered: bool = True
    lost: Callable[[Part], Result] | None = None
    known: Callable[[Part], Result | None] | None = None
    carried: Callable[[Part], Any] | None = None
    is_carrying: bool = False

    def __post_init__(self) -> None:
        # Number, part and future of each submitted part.
        self.waiting: deque[tuple[int, Part, Any]] = deque()
        # parts that were running when a worker was lost
        self.suspects: deque[tuple[int, Part, Any]] = deque()
        self.sent_carried = set[int]()  # indices of parts sent with their data, not its address
        self.distributed: Any = None
        self.given_up: tuple[type[BaseException], ...] = ()
        if self.workers.executor == "dask":
            self.distributed = importlib.import_module("distributed")
            # Dask raises this error only after its own retries.
            self.given_up = (self.distributed.KilledWorker,)
        self.losses = (BrokenProcessPool, CancelledError, *self.given_up)
        self.width, self.measured_at = 0, -math.inf
        self.sent = self.workers._send_shared(self.shared)

    def results(self, parts: Iterable[Part]) -> Iterator[Result]:
        """Yield the results; a few parts are submitted ahead."""
        try:
            for number, part in enumerate(parts):
                while self.suspects or len(self.waiting) >= IN_FLIGHT * self._current_width():
                    yield self._next()
                self.waiting.append((number, part, self._submit(number, part)))
            while self.suspects or self.waiting:
                yield self._next()
        finally:
            with interrupts_held():
                for _, _, future in (*self.suspects, *self.waiting):
                    future.cancel()

    def _current_width(self) -> int:
        """Return how many parts the workers process at once, measured again as workers may join."""
        if (now := time.monotonic()) >= self.measured_at + WIDTH_SECONDS:
            self.width, self.measured_at = self.workers.width, now
        return self.width

    def _submit(self, number: int, part: Part) -> Any:
        future: Future[Result] = Future()
        if self.known is not None and (result := self.known(part)) is not None:
            future.set_result(result)
            return future
        carried = self.carried if self.is_carrying else None
        if carried is not None:
            self.sent_carried.add(number)
        try:
            if self.kept is not None:
                # Send the part without its data: the cached value replaces the data.
                beside = (self.kept.future(number, carried),)
                return self.workers._submit(self.task, number, part, *beside, *self.sent)
            sent = part if carried is None else carried(part)
            return self.workers._submit(self.task, number, sent, *self.sent)
        except self.losses as error:
            # A worker was just lost. `_next` finds this error and does waiting parts again, singly.
            future.set_exception(error)
            return future

    def _next(self) -> Result:
        if self.suspects:
            return self._alone(*self.suspects.popleft())
        try:
            with _reached(*self.losses):
                first = self.waiting[0] if self.ordered else self._first_done()
                result: Result = first[2].result()
        except UnreachableError as error:
            self._carry(first[0], error)
            self.waiting = deque(self._again(*one) for one in self.waiting)
            return self._next()
        except self.losses:
            _log.info("workers were lost: %d parts are done again", len(self.waiting))
            self.suspects, self.waiting = self.waiting, deque()
            self._recover()
            return self._next()
        self.waiting.remove(first)
        return result

    def _first_done(self) -> tuple[int, Part, Any]:
        while True:
            if one := next((one for one in self.waiting if one[2].done()), None):
                return one
            futures = [future for *_, future in self.waiting]
            if self.distributed is not None:
                self.distributed.wait(futures, return_when="FIRST_COMPLETED")
            else:
                wait(futures, return_when=FIRST_COMPLETED)

    def _carry(self, number: int, error: UnreachableError) -> None:
        """Send parts with their data from now on; re-raise the error if this part had its data.

        Parts that were running when a worker was lost are resent in the form they had.
        """
        is_possible = self.carried is not None and self.workers.executor == "dask"
        if not is_possible or number in self.sent_carried:
            raise error
        if not self.is_carrying:
            _log.info("workers cannot read where the parts lie: they are sent what these hold")
        self.is_carrying = True

    def _again(self, number: int, part: Part, future: Any) -> tuple[int, Part, Any]:
        future.cancel()
        return number, part, self._submit(number, part)

    def _recover(self) -> None:
        self.workers._close_pool()
        self.sent = self.workers._send_shared(self.shared)
        if self.kept is not None:
            self.kept.renew()

    def _alone(self, number: int, part: Part, future: Any) -> Result:
        """Run a part alone and return its result, to find out whether the part kills its worker."""
        for attempt in range(RETRIES + 1):
            if attempt > 0:
                future = self._submit(number, part)
            try:
                with _reached(*self.losses):
                    result: Result = future.result()
                return result
            except UnreachableError as error:
                self._carry(number, error)
                return self._alone(*self._again(number, part, future))
            except self.losses as error:
                cause = error
                if isinstance(error, self.given_up):
                    break
                if attempt > 0:
                    self._recover()
        if self.lost is not None:
            return self.lost(part)
        raise KpcaError(
            f"Part {number + 1} ended its worker each time it was tried: give the workers more "
            "memory, or take fewer of them."
        ) from cause


class _Task(Generic[Result]):
    """Run a function on one part with single-threaded linear algebra; its errors name the part."""

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
