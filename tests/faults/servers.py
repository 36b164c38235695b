"""Start servers in processes of their own: this process must have no threads when it forks."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

BUCKET = "kpca-tests"
_SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """Start a scheduler and two workers that are restarted when killed."""
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0",
             "--no-dashboard", "--scheduler-file", str(folder / "scheduler.json")]  # fmt: skip
    scheduler = subprocess.Popen(words, **_SILENT)
    workers = None
    try:
        while not (folder / "scheduler.json").exists():
            time.sleep(0.1)
        address = re.search(r"tcp://[0-9.:]+", (folder / "scheduler.json").read_text())
        assert address is not None
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address[0], "--nworkers", "2",
                 "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]  # fmt: skip
        workers = subprocess.Popen(words, **_SILENT)
        nanny = workers.pid
        time.sleep(3)
        yield address[0], lambda: _spawned_by(nanny)
    finally:
        for process in filter(None, (workers, scheduler)):
            process.terminate()
            process.wait()


def _spawned_by(parent: int) -> list[int]:
    """Return the worker processes that a nanny started."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = []
    for pid in map(int, listed):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@contextmanager
def bucket(table: Path) -> Iterator[Any]:
    """Start moto's S3 server with a table in a bucket; yield its boto3 client."""
    from tests.stores import moto_store

    with moto_store(BUCKET) as client:
        client.upload_file(str(table), BUCKET, f"in/{table.name}")
        yield client
