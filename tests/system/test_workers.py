from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from concurrent.futures import CancelledError, Future
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib.externals.loky.backend.reduction import dumps
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.errors import (
    ConfigError,
    InputError,
    KpcaError,
    RefusedError,
    StoppedError,
    UnreachableError,
)
from kpca_apps.system.files.temporary import TemporaryPath, retired_path
from kpca_apps.system.workers import Workers, _Flight, _unpacking, tree_reduce
from tests.engine.examples import normal_rows
from tests.system.parts import row_parts

PROCESSES = ["processes", pytest.param("dask", marks=pytest.mark.release)]
# Dask closes workers while their connections are in use, which gives the warnings ignored here.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def sums_of(part, basis):
    """Read the rows of a part in the worker, and sum them."""
    X = normal_rows(900)[part.start : part.stop]
    return CovarianceSums.of_rows(basis, X, precision="float32")


def scores_of(part, subspace):
    return subspace.reconstruction_error(normal_rows(900)[part.start : part.stop])


def fails(part):
    if part.number == 2:
        raise ZeroDivisionError("no rows of use")
    return part.start


def refuses(part):
    raise InputError(f"rows {part.start}: no numbers")


def add_start(part, number):
    return part.start + number


def dies_once(part, marker):
    """Kill the worker the first time that part 3 is processed."""
    if part.number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return part.start


def fitted(workers):
    basis = LandmarkBasis.from_eigen(RBF(0.3), normal_rows(900)[:40])
    sums = tree_reduce(add, workers.map_partitions(sums_of, row_parts(900, 128), basis))
    subspace = subspace_from_sums(basis, sums, n_components=8)
    parts = workers.map_partitions(scores_of, row_parts(900, 250), subspace)
    return sums, np.concatenate(list(parts))


@pytest.fixture(scope="module")
def serial():
    with Workers("serial") as workers:
        return fitted(workers)


@pytest.fixture(scope="module")
def dask():
    pytest.importorskip("distributed")
    with Workers("dask", n_workers=2) as workers:
        yield workers


@pytest.fixture(scope="module")
def processes():
    with Workers("processes", n_workers=2) as workers:
        yield workers


@pytest.fixture(params=["serial", "threads", "processes"])
def workers(request, processes):
    if request.param == "processes":
        yield processes
        return
    with Workers(request.param, n_workers=2) as workers:
        yield workers


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_bits_are_the_same_for_any_number_of_threads(serial, n_workers):
    with Workers("threads", n_workers=n_workers) as workers:
        sums, scores = fitted(workers)
        assert workers.width == n_workers
    assert_array_equal(sums.scatter, serial[0].scatter)
    assert_array_equal(scores, serial[1])


@pytest.fixture
def absent(monkeypatch):
    """A module that this process can import but workers cannot."""
    module = types.ModuleType("absent")
    exec("class Thing:\n    def __call__(self, part, *shared):\n        return 1", vars(module))
    monkeypatch.setitem(sys.modules, "absent", module)
    return module


def same_part(part, *shared):
    return part


@pytest.mark.parametrize("executor", PROCESSES)
def test_an_unreadable_part_gives_one_line_and_workers_continue(executor, absent, request):
    workers, thing = request.getfixturevalue(executor), absent.Thing()
    for arguments in ((thing, [1]), (same_part, [thing]), (same_part, [1], thing)):
        with pytest.raises(RefusedError, match=r"cannot read .*absent.*modules of this program"):
            list(workers.map_partitions(*arguments))
    if executor == "dask":
        with pytest.raises(RefusedError):
            list(workers.map_partitions(same_part, [1], kept=workers.keep(thing, [1])))
    assert list(workers.map_partitions(same_part, [1, 2])) == [1, 2]


def test_messages_are_read_without_the_package():
    code = """
import pickle, sys
sys.modules["kpca_apps"] = None
run = pickle.loads(bytes.fromhex(sys.argv[1]))
try:
    run(bytes.fromhex(sys.argv[2]))
except ModuleNotFoundError as error:
    print(error.name)
"""
    packed = [dumps(_unpacking()).hex(), dumps((add_start, KpcaError("of the package"))).hex()]
    done = subprocess.run([sys.executable, "-c", code, *packed], capture_output=True, text=True)
    assert done.stdout.startswith("kpca_apps"), done.stderr


@pytest.mark.parametrize("executor", PROCESSES)
def test_other_processes_agree(executor, serial, request):
    workers = request.getfixturevalue(executor)
    sums, scores = fitted(workers)
    assert workers.width == 2
    assert_allclose(sums.scatter, serial[0].scatter, rtol=0, atol=1e-10)
    assert_allclose(scores, serial[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("executor", PROCESSES)
def test_a_process_killed_in_a_task_loses_nothing(executor, tmp_path, request):
    marker, workers = tmp_path / "died", request.getfixturevalue(executor)
    starts = list(workers.map_partitions(dies_once, row_parts(900, 100), marker))
    assert starts == list(range(0, 900, 100))
    assert marker.exists()


def test_a_process_lost_between_two_parts_loses_nothing(processes):
    def parts():
        for part in row_parts(90, 10):
            if part.number == 2:
                pool = processes._pool
                os.kill(next(iter(pool._processes)), signal.SIGKILL)
                while pool._flags.broken is None:
                    time.sleep(0.01)
            yield part

    assert list(processes.map_partitions(add_start, parts(), 5)) == list(range(5, 95, 10))


def dies_always(part, total):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.release
def test_a_part_that_ends_every_worker_is_named():
    with (
        Workers("processes", n_workers=1) as workers,
        pytest.raises(KpcaError, match="Part 1 ended its worker each time it was tried"),
    ):
        list(workers.map_partitions(dies_always, row_parts(30, 10), 0))


def dies_at_three(part):
    if part.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return part.start


@pytest.mark.release
def test_the_part_that_ends_its_process_is_found_among_those_under_way():
    with Workers("processes", n_workers=2) as workers:
        parts = row_parts(60, 10)
        with pytest.raises(KpcaError, match="Part 4"):
            list(workers.map_partitions(dies_at_three, parts))
        found = workers.map_partitions(
            dies_at_three, parts, ordered=False, lost=lambda part: -part.number
        )
        assert sorted(found) == [-3, 0, 10, 20, 40, 50]


def identity_of(part, thing):
    return os.getpid(), id(thing), float(thing[part.number])


def test_large_arguments_are_sent_to_each_process_once(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    thing = np.arange(200_000.0)
    with Workers("processes", n_workers=2) as workers:
        found = list(workers.map_partitions(identity_of, row_parts(80, 10), thing))
        assert [value for *_, value in found] == list(range(8))
        assert len({entry[:2] for entry in found}) == len({process for process, *_ in found})
    assert list(tmp_path.iterdir()) == []


def first_waits(part, marker):
    """Delay the first part until the others have started, within a time limit."""
    patience = iter(range(600))
    while part.number == 0 and not marker.exists() and next(patience, None) is not None:
        time.sleep(0.1)
    return part.start


def test_results_may_arrive_in_order_of_completion(processes, tmp_path):
    marker = tmp_path / "heard"
    results = processes.map_partitions(first_waits, row_parts(30, 10), marker, ordered=False)
    assert {next(results), next(results)} == {10, 20}
    marker.touch()
    assert list(results) == [0]


@pytest.mark.skipif(sys.platform == "win32", reason="a process keeps the number of its parent")
def test_processes_end_with_the_one_that_started_them():
    script = (
        "import time\n"
        "from kpca_apps.system.workers import Workers\n"
        "with Workers('processes', n_workers=1) as workers:\n"
        "    results = workers.map_partitions(time.sleep, [0.0, 600.0])\n"
        "    next(results)\n"
        "    print('begun', flush=True)\n"
        "    next(results)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "begun\n"
        run.kill()
        # The pipe closes when the last process that can write to it ends.
        assert run.communicate(timeout=60)[0] == ""


@pytest.mark.release
def test_a_replaced_worker_gets_shared_data_again_and_leaves_no_files(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    marker, files = tmp_path / "died", tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    with Workers("dask", n_workers=1) as workers:
        assert any(files.iterdir())
        starts = list(workers.map_partitions(dies_once, row_parts(900, 100), marker))
    assert starts == list(range(0, 900, 100))
    assert marker.exists()
    assert list(files.iterdir()) == []


class Insistent:
    """A future whose user interrupts again while it is being cancelled."""

    def cancel(self):
        signal.raise_signal(signal.SIGINT)
        self.cancelled = True


def test_a_second_interrupt_does_not_stop_the_orderly_shutdown():
    with pytest.raises(KeyboardInterrupt), Workers("threads", n_workers=1) as workers:
        closing = Insistent()
        workers._opened.callback(closing.cancel)
        flight = _Flight(workers, None, ())
        futures = [Insistent(), Insistent()]
        flight._submit = lambda number, part: futures[number]
        flight._next = lambda: signal.raise_signal(signal.SIGINT)
        list(flight.results(range(2)))
    assert [future.cancelled for future in (*futures, closing)] == [True] * 3


@pytest.mark.parametrize("n_lost", [0, 1])
def test_all_parts_that_cannot_be_read_are_carried_where_a_worker_is_lost_too(n_lost):
    sent = []

    def submit(task, number, part):
        future = Future()
        if len(sent) < n_lost:
            future.set_exception(CancelledError())
        elif part.startswith("carried"):
            future.set_result(part)
        else:
            future.set_exception(UnreachableError("no such file"))
        sent.append(part)
        return future

    workers = types.SimpleNamespace(
        executor="dask", width=2, _submit=submit, _send_shared=lambda shared: (), _close_pool=int
    )
    flight = _Flight(workers, None, (), carried="carried {}".format)
    assert [*flight.results("abc")] == ["carried a", "carried b", "carried c"]
    flight = _Flight(workers, None, (), carried=str)  # unusable
    with pytest.raises(UnreachableError):
        [*flight.results("abc")]


def test_abandoned_work_ends_silently_with_the_interpreter():
    # A reference cycle, as a traceback creates, outlives the signal handlers.
    script = (
        "import gc\n"
        "from kpca_apps.system.workers import Workers\n"
        "gc.disable()\n"
        "left = [Workers().map_partitions(abs, range(9))]\n"
        "next(left[0])\n"
        "left.append(left)\n"
        "del left\n"
    )
    words = [sys.executable, "-c", script]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stderr == ""


def test_parts_are_requested_as_needed(workers):
    taken = []

    def parts():
        for part in row_parts(900, 10):
            taken.append(part.number)
            yield part

    results = workers.map_partitions(add_start, parts(), 5)
    for number in range(4):
        assert next(results) == 10 * number + 5
        assert len(taken) <= number + 1 + 3 * workers.width
    results.close()


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_consuming_results_keeps_the_linear_algebra_threads(executor):
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"), Workers(executor, n_workers=1) as workers:
        results = workers.map_partitions(add_start, row_parts(20, 10), 5)
        assert next(results) == 5
        if executor == "threads":  # threads wait until the running part is done
            workers._close_pool()
        assert set(threads()) == {2}
        results.close()


def test_a_part_that_fails_is_named(workers):
    with pytest.raises(KpcaError, match=r"Part 3 \(.*start=20.*\) failed: no rows of use"):
        list(workers.map_partitions(fails, row_parts(50, 10)))
    with pytest.raises(InputError, match="no numbers"):
        list(workers.map_partitions(refuses, row_parts(50, 10)))


def test_known_parts_are_not_computed(workers):
    known = {0: "none", 20: "two"}
    found = workers.map_partitions(
        add_start, row_parts(50, 10), 5, known=lambda part: known.get(part.start)
    )
    assert list(found) == ["none", 15, "two", 35, 45]


@pytest.mark.release
def test_a_cluster_on_this_machine_listens_to_it_alone(dask):
    sockets = dask._client.cluster.scheduler.http_server._sockets.values()
    assert {sock.getsockname()[0] for sock in sockets} == {"127.0.0.1"}


@pytest.mark.release
def test_a_part_that_fails_on_dask_is_named(dask):
    with pytest.raises(KpcaError, match="Part 3"):
        list(dask.map_partitions(fails, row_parts(50, 10)))


@pytest.mark.release
def test_the_folder_of_a_killed_cluster_is_removed_by_the_next(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = tmp_path / "kpca-dask"
    alive = TemporaryPath(target, folder=True)
    killed = retired_path(target).with_suffix(".partial")
    (killed / "dask-scratch-space").mkdir(parents=True)
    with Workers("dask", n_workers=1):
        assert not killed.exists()
        assert alive.path.exists()
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == [alive.path]


# tls:// needs certificates; the last address belongs to a silent port.
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "nowhere://", "tls://127.0.0.1:9", "tcp://127.0.0.1:{}"]
)
def test_an_address_without_a_scheduler_is_reported_in_one_line(address, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("kpca_apps.system.dask_client.ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = address.format(silent.getsockname()[1])
        with pytest.raises(RefusedError, match=f"No Dask scheduler answers at {address}"):
            Workers("dask", scheduler=address)


def test_a_scheduler_without_workers_gives_one_line_and_is_closed(monkeypatch):
    distributed = pytest.importorskip("distributed")
    clients = []
    opened = distributed.Client

    def noted(*words, **more):
        clients.append(opened(*words, **more))
        # The scheduler has answered, but there are no workers to wait for.
        monkeypatch.setattr("kpca_apps.system.dask_client.ANSWER_SECONDS", 0.1)
        return clients[-1]

    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        monkeypatch.setattr(distributed, "Client", noted)
        with pytest.raises(RefusedError, match="has no workers: start some"):
            Workers("dask", scheduler=cluster.scheduler_address)
        assert [client.status for client in clients] == ["closed"]


def test_workers_that_cannot_be_started_here_are_an_error_of_one_line(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def fails(**_):
        raise RuntimeError("Cluster failed to start: nanny died")

    monkeypatch.setattr(distributed, "LocalCluster", fails)
    with pytest.raises(RefusedError, match="cannot start its workers on this machine: take"):
        Workers("dask", n_workers=2)


def test_a_client_is_accepted_and_left_open_and_nothing_else_is(client_of_its_own):
    with Workers("dask", scheduler=client_of_its_own) as workers:
        assert list(workers.map_partitions(add_start, row_parts(30, 10), 5)) == [5, 15, 25]
    assert client_of_its_own.status == "running"
    with pytest.raises(ConfigError, match=r"by a distributed\.Client .*, not by a int"):
        Workers("dask", scheduler=8786)


@pytest.mark.release
def test_a_stopped_cluster_is_reported_in_one_line():
    pytest.importorskip("distributed")
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    address = f"tcp://127.0.0.1:{port}"
    scheduler = subprocess.Popen([*words, "--port", str(port), "--no-dashboard"], **quiet)
    words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    worker = subprocess.Popen([*words, "--no-dashboard"], **quiet)
    try:
        with Workers("dask", scheduler=address) as workers:
            results = workers.map_partitions(add_start, row_parts(900, 10), 5)
            assert next(results) == 5
            scheduler.kill()
            with pytest.raises(
                StoppedError, match=r"cluster cannot be reached .* same command again"
            ):
                list(results)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def client_of_its_own():
    """Connect a separate client to a cluster in this process."""
    distributed = pytest.importorskip("distributed")
    at = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**at) as cluster, distributed.Client(cluster) as client:
        yield client


def test_options_that_contradict_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match="executor must be one of serial, threads"):
        Workers("cluster")
    with pytest.raises(ConfigError, match="A scheduler is for the executor dask"):
        Workers("threads", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(ConfigError, match="address of the scheduler is empty"):
        Workers("dask", scheduler=" ")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match="Dask is not installed: pip install"):
        Workers("dask")


@given(n=st.integers(1, 70))
def test_a_tree_combines_everything_once_and_in_order(n):
    assert tree_reduce(add, iter([[number] for number in range(n)])) == list(range(n))


def test_an_empty_list_cannot_be_combined():
    with pytest.raises(ValueError, match="nothing to combine"):
        tree_reduce(add, [])
