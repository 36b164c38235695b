"""Parquet files are read once by another process before this one takes them in.

A flipped bit can make the reader ask for more memory than there is, which ends its process at once,
or write remarks of its own to standard error. Both then happen to a process that can be spared. The
price is one more pass over the cells, and the start of an interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from kpca_apps.files.binary import damaged
from kpca_apps.files.known import KnownFile
from kpca_apps.files.limits import available_memory
from kpca_apps.files.parquet_groups import LONGEST_GROUP, group_rows

__all__ = ["require_readable"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kpca_apps.files.parquet_trial_run import main; main()"
)
# What a reader reserves and does not use: stacks of its threads, arenas of its allocator.
_RESERVED = 1 << 32


def require_readable(files: Sequence[KnownFile]) -> None:
    """Refuse Parquet files that cannot be read to their ends.

    Parameters
    ----------
    files : sequence of KnownFile
        The files.

    Raises
    ------
    InputError
        Naming the first that cannot, and why.
    """
    if not sys.executable:
        # An interpreter inside another program cannot be started a second time.
        return
    told = {
        "memory": available_memory() + _RESERVED + max(file.size for file in files),
        "files": [(file.path, group_rows(file) > LONGEST_GROUP) for file in files],
    }
    done = subprocess.run(
        [sys.executable, "-c", _START, json.dumps([str(item) for item in sys.path])],
        input=json.dumps(told).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    numbers = [line for line in said if isinstance(line, int)]
    # Nothing said: the process did not get as far as a file.
    if numbers and (done.returncode or isinstance(said[-1], str)):
        reason = said[-1] if isinstance(said[-1], str) else _ending(done)
        raise damaged(files[numbers[-1]].label, "Parquet", ValueError(reason))


def _ending(done: subprocess.CompletedProcess[bytes]) -> str:
    """Say what ended the process: most often what the reader asked for last."""
    for line in done.stderr.splitlines():
        if line.startswith(b"memory allocation of "):
            return line.decode("ascii", "replace")
    return f"its reader broke off with code {done.returncode}"
