"""A cluster whose workers share no folder: each worker sees the others' folders as empty."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Arguments: folders to hide, a temporary folder, and the command to run.
_APART = """
mount --make-rprivate / || exit 9
own=$1; shift
while [ "$1" != -- ]; do mount -t tmpfs -o size=64k,mode=700 tmpfs "$1" || exit 9; shift; done
shift
TMPDIR=$own exec "$@"
"""


@dataclass
class Cluster:
    """A scheduler and workers whose processes can be killed."""

    folder: Path
    hidden: tuple[Path, ...]
    client: Any
    options: tuple[str, ...] = ()  # command-line options of each worker
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    def join(self, n_workers: int = 1) -> None:
        """Start workers, and wait until the scheduler knows them."""
        homes = [self.folder / f"worker-{len(self.processes) + k}" for k in range(n_workers)]
        for home in homes:
            home.mkdir(mode=0o700)
        others = sorted(self.folder.glob("worker-*"))
        for home in homes:
            hidden = [*self.hidden, *(other for other in others if other != home)]
            words = ["dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            words += ["--local-directory", str(home), *self.options]
            self.processes.append(
                subprocess.Popen(
                    [
                        *("unshare", "-m", "bash", "-c", _APART, "apart", str(home)),
                        *map(str, hidden),
                        *("--", sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]),
                    ],
                    stderr=subprocess.DEVNULL,
                )
            )
        self.client.wait_for_workers(sum(process.poll() is None for process in self.processes), 60)

    def kill(self) -> None:
        self.processes[0].kill()


@contextmanager
def apart(
    folder: Path, *hidden: Path, n_workers: int = 3, options: tuple[str, ...] = ()
) -> Iterator[Cluster]:
    """Start a cluster; workers see the given folders, and folders of other workers, as empty."""
    distributed = pytest.importorskip("distributed")
    words = ["unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt"]
    if shutil.which("unshare") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this user may not mount folders in a namespace of his own")
    at = {"protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **at) as scheduler,
        distributed.Client(scheduler) as client,
    ):
        cluster = Cluster(folder, hidden, client, options)
        try:
            cluster.join(n_workers)
            yield cluster
        finally:
            for process in cluster.processes:
                process.kill()
                process.wait()
