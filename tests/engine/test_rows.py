import os
import signal
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from kpca_apps.engine.rows import BLOCK, map_row_blocks, sum_row_blocks
from kpca_apps.system import blas
from kpca_apps.system.blas import one_blas_thread
from tests.engine.examples import normal_rows


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_map_keeps_rows_and_order(n, n_jobs):
    X = normal_rows(n, 3)
    result = map_row_blocks(lambda rows: rows.sum(axis=1), X, block=4, n_jobs=n_jobs)
    assert_array_equal(result, X.sum(axis=1))


def test_map_of_no_rows_is_empty():
    assert map_row_blocks(lambda rows: rows * 2, np.empty((0, 3))).shape == (0, 3)


def test_every_block_is_full():
    sizes = []
    map_row_blocks(lambda rows: sizes.append(len(rows)) or rows, normal_rows(10), block=4)
    assert sizes == [4, 4, 4]


@pytest.mark.parametrize(("p", "q"), [(22, 300), (300, 300), (7, 5), (500, 101)])
def test_a_row_gets_the_same_bits_wherever_it_lies_in_a_block(p, q):
    W = normal_rows(p, q)
    products = np.repeat(normal_rows(1, p), BLOCK, axis=0) @ W
    assert_array_equal(products, np.broadcast_to(products[0], products.shape))


def test_sums_go_in_the_order_of_the_blocks_for_any_number_of_workers():
    X = np.arange(40.0).reshape(20, 2)
    for n_jobs in (1, 3):
        order = sum_row_blocks(lambda rows: [rows[0, 0]], X, block=3, n_jobs=n_jobs)
        assert order == list(X[::3, 0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_overflow_handling_is_the_same_in_all_threads(n_jobs):
    X = np.full((30, 2), 1e200)
    with np.errstate(over="ignore"):
        assert np.isinf(map_row_blocks(np.square, X, block=4, n_jobs=n_jobs)).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        map_row_blocks(np.square, X, block=4, n_jobs=n_jobs)


def blas_threads():
    # Other tests may have loaded libraries with a BLAS of their own.
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in blas if "opencv" not in library["filepath"]}


@pytest.fixture
def two_blas_threads():
    """Let BLAS use two threads during a test."""
    before = max(blas_threads())
    set_blas_threads(2)
    yield
    set_blas_threads(before)


def set_blas_threads(number):
    setter = threading.Thread(target=threadpool_limits, args=(number, "blas"))
    setter.start()
    setter.join()


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_one_blas_thread_holds_until_the_last_of_two_threads_has_left(first_leaves_first):
    inside, leave, left, end = (threading.Event() for _ in range(4))

    def first():
        with one_blas_thread():
            inside.set()
            leave.wait(10.0)
        left.set()
        end.wait(10.0)

    before = blas_threads()
    other = threading.Thread(target=first)
    other.start()
    assert inside.wait(10.0)
    with one_blas_thread():
        if first_leaves_first:
            leave.set()
            assert left.wait(10.0)
        assert blas_threads() == {1}
    if not first_leaves_first:
        assert blas_threads() == {1}
        leave.set()
        assert left.wait(10.0)
    assert blas_threads() == before
    end.set()
    other.join()


@pytest.mark.usefixtures("two_blas_threads")
def test_one_blas_thread_is_given_back_after_an_error():
    before = blas_threads()
    with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
        raise KeyError
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("step", ["limit", "restore_original_limits"])
def test_one_blas_thread_is_given_back_after_an_interrupt_on_the_way(monkeypatch, step):
    before = blas_threads()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        limits = blas._linear_algebra().limit(limits=None)
        owner = type(limits if step == "restore_original_limits" else blas._linear_algebra())
        plain = getattr(owner, step)

        def interrupted(*given, **options):
            signal.raise_signal(signal.SIGINT)
            return plain(*given, **options)

        patched.setattr(owner, step, interrupted)
        with one_blas_thread():
            pass
    assert blas_threads() == before
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("step", ["__setitem__", "pop"])
@pytest.mark.parametrize("count", [1, 2])
def test_one_blas_thread_is_given_back_after_an_interrupt_of_an_inner_block(
    monkeypatch, step, count
):
    before, times = blas_threads(), iter(range(1, 10))

    def interrupted(inside, *given):
        found = getattr(dict, step)(inside, *given)
        if next(times) == count:
            signal.raise_signal(signal.SIGINT)
        return found

    inside = type("Interrupted", (dict,), {step: interrupted})()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(blas, "_INSIDE", inside)
        with one_blas_thread(), one_blas_thread():
            pass
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("is_own", [True, False])
def test_a_child_keeps_the_one_blas_thread_of_the_thread_that_forked_it(is_own):
    inside, leave = threading.Event(), threading.Event()

    def limited():
        with one_blas_thread():
            inside.set()
            leave.wait(10.0)

    before = blas_threads()
    other = threading.Thread(target=limited)
    other.start()
    assert inside.wait(10.0)
    with one_blas_thread() if is_own else nullcontext():
        child = os.fork()
        if not child:
            code = 2
            try:
                code = int(blas_threads() != ({1} if is_own else before))
            finally:
                os._exit(code)
    leave.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert blas_threads() == before
