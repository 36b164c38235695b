"""Workbooks are read in a process of their own, which may end badly without harm to this one.

What reads them is compiled code that a damaged file can make allocate without bound, abort or never
end. The process has a limit of memory and of time. It gets the bytes of the file on its standard
input, behind a line of JSON, and answers with a line of JSON and the sheet in Arrow's format.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl

from kpca_apps.errors import InputError, KpcaError, MemoryLimitError
from kpca_apps.system.arrays import IntArray
from kpca_apps.system.memory import available_bytes

ROW = "\0row"  # the column of row numbers beside those of the sheet, whose names are kept apart
# Memory that a workbook may take: for small ones the least, for others so many times what they
# unpack to; and time, likewise. Wide bounds, for who has no other way to read it.
LEAST_BYTES, TIMES = 1 << 30, 24
LEAST_SECONDS, BYTES_A_SECOND = 60.0, 1e6
_MODULE = "kpca_apps.tables.read.excel"


@dataclass(frozen=True)
class ReadSheet:
    """One sheet of a workbook."""

    frame: pl.DataFrame
    rows: IntArray  # (n,), their numbers in the sheet
    notes: list[str]
    name: str


def read_in_process(
    data: bytes, sheet: str | int | None, skip_rows: int, unpacked: int
) -> ReadSheet:
    """Read a sheet of a workbook of so many bytes `unpacked`; InputError if its reader fails."""
    most = int(min(max(LEAST_BYTES, TIMES * unpacked), available_bytes()))
    seconds = LEAST_SECONDS + unpacked / BYTES_A_SECOND
    request = {"sheet": sheet, "skip_rows": skip_rows, "bytes": most}
    # Nothing is imported from the folder that happens to be current (-P).
    paths = os.pathsep.join(path for path in sys.path if path)
    one_thread = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", _MODULE],
            input=json.dumps(request).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one_thread, "PYTHONPATH": paths},
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"reading it takes more than {seconds:.0f} seconds; save the sheet as CSV or Parquet."
        ) from None
    if done.returncode:
        why = f"code {done.returncode}"
        if done.returncode < 0:
            why = signal.Signals(-done.returncode).name
        raise InputError(
            f"is damaged, or takes more than {most / 2**30:.1f} GB to read ({why}); open it in a "
            "spreadsheet program and save it anew, or save the sheet as CSV."
        )
    head, _, body = done.stdout.partition(b"\n")
    found = json.loads(head)
    if "error" in found:
        kinds: dict[str, type[KpcaError]] = {
            kind.__name__: kind for kind in (InputError, MemoryLimitError)
        }
        raise kinds[found["error"]](found["message"])
    frame = pl.read_ipc(io.BytesIO(body))
    rows = frame.drop_in_place(ROW).to_numpy()
    frame.columns = found["columns"]
    return ReadSheet(frame, rows, found["notes"], found["name"])


def serve(read: Callable[..., ReadSheet], source: IO[bytes], target: IO[bytes]) -> None:
    """Do what `read_in_process` asks, with `read` as what reads a workbook."""
    request = json.loads(source.readline())
    _bound_memory(request["bytes"])
    answer: dict[str, object]
    body = b""
    try:
        sheet = read(source.read(), request["sheet"], request["skip_rows"])
        numbered = pl.DataFrame(
            [*(c.alias(str(k)) for k, c in enumerate(sheet.frame)), pl.Series(ROW, sheet.rows)]
        )
        file = io.BytesIO()
        numbered.write_ipc(file)
        body = file.getvalue()
        answer = {"columns": sheet.frame.columns, "notes": sheet.notes, "name": sheet.name}
    except KpcaError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    target.write(json.dumps(answer).encode() + b"\n" + body)
    target.flush()


def _bound_memory(n_bytes: int) -> None:
    """Refuse to take so many bytes more than are reserved now, where the system can."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        reserved = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = reserved * resource.getpagesize() + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
