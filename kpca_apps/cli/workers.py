"""Who works for a command."""

from __future__ import annotations

import logging

from kpca_apps.system.workers import Executor, Workers, on_dask, workers_for


def quiet_workers(executor: Executor | None, jobs: int | None, scheduler: str | None) -> Workers:
    """Return the workers that a command asks for; the machinery of a cluster says nothing."""
    if on_dask(executor, scheduler):
        # What it has to say in passing is for those who run a cluster.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return workers_for(executor, jobs, scheduler)
