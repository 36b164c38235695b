"""Create the threads, processes or Dask workers that run the computations of a command."""

from __future__ import annotations

import logging

from kpca_apps.system.workers import Executor, Workers, on_dask, workers_for


def quiet_workers(executor: Executor | None, jobs: int | None, scheduler: str | None) -> Workers:
    """Return the workers for the options of a command, without log messages of Dask."""
    if on_dask(executor, scheduler):
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return workers_for(executor, jobs, scheduler)
