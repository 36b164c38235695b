"""Results are bit-identical across threads, processes, event loops, joblib and notebooks."""

import asyncio
import hashlib
import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.model_selection import GridSearchCV

from kpca_apps import KernelPCA, KernelPCANovelty, denoise_kpca, screen_table
from kpca_apps.engine.kernels import MeanRBF

ROWS = np.random.default_rng(0).normal(size=(900, 4))
NEW = np.random.default_rng(1).normal(size=(500, 4))
IMAGE = 100 + 20 * np.random.default_rng(2).standard_normal((48, 64))

if hasattr(os, "fork"):
    STARTS = ["fork", "spawn"]
else:
    STARTS = ["spawn"]


def digest(*arrays: Any) -> str:
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    ).hexdigest()


def exact() -> str:
    model = KernelPCA(20, n_jobs=2, random_state=0).fit(ROWS)
    T = model.transform(NEW)
    return digest(T, model.reconstruction_error(NEW), model.inverse_transform(T[:60]))


def landmarks() -> str:
    options: dict[str, Any] = {"kernel": MeanRBF(0.2), "method": "nystroem", "precision": "float32"}
    model = KernelPCA(10, n_landmarks=80, n_jobs=2, random_state=0, **options).fit(ROWS)
    return digest(model.transform(NEW), model.eigenvalues_)


def novelty() -> str:
    model = KernelPCANovelty(n_landmarks=60, n_jobs=2, random_state=0).fit(ROWS)
    return digest(model.novelty_scores_, model.novelty_scores(NEW))


def denoising() -> str:
    return digest(denoise_kpca(IMAGE, sigma=20.0, data_range=255, quality="fast", n_jobs=2))


def screening() -> str:
    result = screen_table({"a": ROWS[:200, 0], "b": ROWS[:200, 1], "c": [*"xyxyz"] * 40})
    return digest(result.rows.scores, result.rows.is_flagged)


WORK: dict[str, Callable[[], str]] = {
    function.__name__: function for function in (exact, landmarks, novelty, denoising, screening)
}
# A forked child lacks the threads that read tables, so screening there is refused.
FORKABLE = [name for name in WORK if name != "screening"]


def work(name: str) -> str:
    return WORK[name]()


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    """Return the result of each piece of work when nothing else runs."""
    return {name: work(name) for name in WORK}


def test_work_in_several_threads_at_once_gives_the_bits_of_work_alone(
    alone: dict[str, str],
) -> None:
    names = [*WORK] * 2
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, names)] == [alone[name] for name in names]


def test_one_model_serves_several_threads() -> None:
    """The test covers lazy initialisation, too: any thread may be the first to call."""
    models = [KernelPCA(6, kernel=kernel).fit(ROWS[:80]) for kernel in ("rbf", "poly", "sigmoid")]
    detector = KernelPCANovelty(random_state=0).fit(ROWS)

    def use(_: int) -> str:
        outputs = []
        for model in models:
            T = model.transform(NEW[:40])
            outputs += [T, model.inverse_transform(T)]
        return digest(*outputs, detector.novelty_scores(NEW))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(use, range(8)))) == 1


def test_fitting_and_scoring_work_in_an_event_loop(alone: dict[str, str]) -> None:
    async def several() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(work, name) for name in WORK))

    assert asyncio.run(several()) == [*alone.values()]


@pytest.mark.release
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_joblib_works_with_any_backend(backend: str, alone: dict[str, str]) -> None:
    names = FORKABLE if backend == "multiprocessing" else [*WORK]
    with warnings.catch_warnings():
        # joblib warns about forking with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        results = Parallel(n_jobs=2, backend=backend)(delayed(work)(name) for name in names)
    assert results == [alone[name] for name in names]


@pytest.mark.release
def test_a_context_of_joblib_and_a_search_over_parameters_change_nothing(
    alone: dict[str, str],
) -> None:
    for backend in ("threading", "loky"):
        with parallel_config(backend=backend, n_jobs=2):
            assert exact() == alone["exact"]
            assert denoising() == alone["denoising"]
    search = GridSearchCV(
        KernelPCA(3, kernel="poly"),
        {"gamma": [0.1, 1.0]},
        scoring=lambda model, X, y=None: -float(model.reconstruction_error(X).mean()),
        n_jobs=2,
        cv=2,
    ).fit(ROWS[:60])
    one = GridSearchCV(**{**search.get_params(deep=False), "n_jobs": 1}).fit(ROWS[:60])
    assert (
        search.cv_results_["mean_test_score"].tolist()
        == one.cv_results_["mean_test_score"].tolist()
    )


@pytest.mark.release
@pytest.mark.parametrize("start", STARTS)
def test_processes_that_are_forked_after_use_or_spawned_do_the_same(
    start: str, alone: dict[str, str]
) -> None:
    names = FORKABLE if start == "fork" else [*WORK]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(start).Pool(2) as pool:
            results = pool.map_async(work, names).get(timeout=300)
    assert results == [alone[name] for name in names]


def forked(code: str) -> str:
    """Return the output of a forked child, which has one minute to finish."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


FORKING = """
import os, threading
import numpy as np
from kpca_apps import KernelPCA, RefusedError, screen_table

def child(function):
    number = os.fork()
    if not number:
        try:
            print(function(), flush=True)
        finally:
            os._exit(0)
    os.waitpid(number, 0)
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")


@needs_fork
def test_a_child_screens_tables_unless_its_parent_has_done_so() -> None:
    """The parent's reader threads do not survive a fork, so the second child is refused at once."""
    code = """
def screened():
    try:
        return screen_table({"a": [i % 7 for i in range(40)], "b": [1, 2] * 20}).n_rows
    except RefusedError as error:
        return error

child(screened)
screened()
child(screened)
"""
    first, second = forked(code).splitlines()
    assert first == "40" and 'get_context("spawn")' in second


@needs_fork
def test_children_forked_while_threads_limit_the_linear_algebra_are_not_stuck() -> None:
    code = """
from kpca_apps.system.blas import one_blas_thread
done = threading.Event()
def limit():
    while not done.is_set():
        with one_blas_thread():
            pass
threads = [threading.Thread(target=limit) for _ in range(2)]
for thread in threads:
    thread.start()
X = np.random.default_rng(0).normal(size=(50, 3))
for _ in range(5):
    child(lambda: KernelPCA(2, gamma=.3).fit(X).transform(X).shape)
done.set()
"""
    assert forked(code) == "(50, 2)\n" * 5


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from threadpoolctl import threadpool_info
from tests.interrupts import HEARS_INTERRUPTS
from tests.test_concurrency import work

exec(HEARS_INTERRUPTS)
def limits():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

name, heard = sys.argv[1], 0
expected, before, start = work(name), limits(), time.perf_counter()
work(name)
needed = time.perf_counter() - start
for moment in np.random.default_rng(3).uniform(0.0, needed, 12):
    timer = threading.Timer(moment, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        work(name)
        timer.join()
        time.sleep(0.1)
    except KeyboardInterrupt:
        heard += 1
    assert limits() == before, (limits(), before)
print(heard > 0, work(name) == expected)
"""


@pytest.mark.release
@pytest.mark.parametrize("name", WORK)
def test_after_an_interrupt_anywhere_the_process_is_as_before(name: str, repository: Path) -> None:
    """After an interrupt, the number of threads is as before, and a rerun gives the same bits."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, name],
        cwd=repository,
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr
