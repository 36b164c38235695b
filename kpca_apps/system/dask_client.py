"""Dask client of a local cluster, or of a scheduler at an address."""

from __future__ import annotations

import asyncio
import importlib
import logging
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from kpca_apps.errors import ConfigError, RefusedError, install_extra
from kpca_apps.system.files.temporary import private_path
from kpca_apps.system.interrupts import interrupts_held

ANSWER_SECONDS = 20.0  # seconds that a scheduler has to answer
_GUARD = (
    "A script that starts workers is imported by each of them: put its work under if __name__ == "
    '"__main__".'
)

_log = logging.getLogger(__name__)


def dask_client(n_workers: int | None, scheduler: str | Any | None, opened: ExitStack) -> Any:
    """Return a client of a scheduler or of a new local cluster, with at least one worker.

    An existing client is returned as is. ``opened`` collects what to close, also after an error.
    Raises ConfigError if Dask is not installed, RefusedError if the scheduler does not answer or
    has no workers.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise ConfigError(
            f"Dask is not installed: {install_extra('dask')}, or choose another executor."
        ) from error
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RefusedError(_GUARD)
    if scheduler is None or isinstance(scheduler, str):
        client, name = _opened_client(distributed, n_workers, scheduler, opened)
    elif isinstance(scheduler, distributed.Client) and not scheduler.asynchronous:
        client, name = scheduler, str(scheduler.scheduler_info(n_workers=0)["address"])
    else:
        raise ConfigError(
            "The scheduler is named by its address, such as tcp://10.0.0.1:8786, or by a "
            f"distributed.Client that is not asynchronous, not by a {type(scheduler).__name__}."
        )
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError as error:
        raise RefusedError(
            f"The scheduler {name} has no workers: start some (dask worker), then try again."
        ) from error
    _log.info("dask: %s", client)
    return client


def _opened_client(
    distributed: Any, n_workers: int | None, scheduler: str | None, opened: ExitStack
) -> tuple[Any, str]:
    cluster: Any = scheduler
    if scheduler is None:
        cluster = _local_cluster(distributed, n_workers, opened)
    else:
        _greet(distributed, scheduler)
    name = scheduler or "of this machine"
    try:
        client = distributed.Client(cluster, timeout=ANSWER_SECONDS)
    except (OSError, ImportError, ValueError) as error:
        raise _no_answer(name) from error
    opened.callback(client.close)
    return client, name


def _local_cluster(distributed: Any, n_workers: int | None, opened: ExitStack) -> Any:
    # Workers leave files behind, so the cluster gets a temporary folder that is removed with it.
    try:
        scratch = private_path("kpca-dask", folder=True)
        opened.callback(scratch.close)
        folder = str(scratch.path)
        scratch_folder = importlib.import_module("dask").config.set({"temporary-directory": folder})
        with interrupts_held(), scratch_folder:
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                # With the default address, the dashboard would listen on every network interface.
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            opened.callback(cluster.close)
    except (OSError, RuntimeError, ValueError) as error:
        raise RefusedError(
            "Dask cannot start its workers on this machine: take fewer of them, or the executor "
            f"processes. {_GUARD}"
        ) from error
    return cluster


def _greet(distributed: Any, scheduler: str) -> None:
    """Raise RefusedError unless a scheduler answers in time; a client would wait forever."""

    async def greet() -> None:
        secured = distributed.Security().get_connection_args("client")
        answer = distributed.core.connect(scheduler, timeout=ANSWER_SECONDS, **secured)
        spoken = await asyncio.wait_for(answer, ANSWER_SECONDS)
        spoken.abort()

    # Use another thread: in a notebook, this thread already runs an event loop.
    with ThreadPoolExecutor(max_workers=1) as aside:
        try:
            aside.submit(asyncio.run, greet()).result()
        except Exception as error:
            # The address may be invalid, or belong to a server of another kind.
            raise _no_answer(scheduler) from error


def _no_answer(name: str) -> RefusedError:
    return RefusedError(
        f"No Dask scheduler answers at {name}: give its address, such as tcp://10.0.0.1:8786, or "
        "start one (dask scheduler)."
    )
