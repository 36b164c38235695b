"""Fuzz every reader, guided by code coverage; only the package's own errors may be raised.

Each target is an entry point of `tests/hostile/doors.py`, the function that a command calls. Inputs
start from small valid files and are mutated by bytes or by structure (`fuzz_inputs.py`). A file
must be read or rejected in one line, in 10 s of CPU time and 1 GB. Faults are saved in a folder per
target, once per place in the code, with the traceback. Needs ``pip install atheris``, which
includes libFuzzer, on Linux::

    python -m tests.benchmarks.fuzz --minutes 10
    python -m tests.benchmarks.fuzz --minutes 1 --targets csv tiff --corpus FOLDER

``--corpus`` keeps inputs that reach new code, for later runs. ``--show FILE --targets T`` reads one
file.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import mmap
import os
import resource
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atheris.import_hook import HookManager

SECONDS, HANGS = 10.0, 60  # CPU seconds per file; wall seconds before the process is killed
MOST_MEMORY, ADDRESS_SPACE = 1 << 30, 6 << 30  # bytes per file; limit of the whole process
# These modules hold numba functions, and numba cannot compile instrumented code.
NOT_INSTRUMENTED = [
    f"kpca_apps.{name}"
    for name in (
        "novelty.detector.nearest", "engine.kernels.exponentials",
        "denoise.estimate.law", "denoise.passes.groups", "system.registers",
        "engine.linalg.small_matrices", "engine.groups.compiled", "system.compiling",
    )
]  # fmt: skip
COUNTED = ("files", "read", "refused")


# Modules that are slow to import, imported once before a process for each target is forked.
AHEAD = (
    "kpca_apps.cli.main", "kpca_apps.images.files", "kpca_apps.tables.opening",
    "kpca_apps.tables.read.delta", "kpca_apps.novelty.run",
    "kpca_apps.novelty.compare.diff", "kpca_apps.denoise.batch.run",
    "kpca_apps.denoise.batch.pages", "kpca_apps.denoise.batch.per_image",
    "kpca_apps.denoise.batch.profile", "kpca_apps.denoise.dictionary",
    "tests.benchmarks.mutated_images", "tests.benchmarks.fuzz_inputs",
)  # fmt: skip


def instrumented() -> HookManager:
    """Instrument our modules on import to record coverage."""
    import atheris

    return atheris.instrument_imports(include=["kpca_apps"], exclude=NOT_INSTRUMENTED)


def fuzz(target: str, seconds: int, corpus: Path, found: Path) -> None:
    """Fuzz one target; the process exits afterwards."""
    import atheris

    folder = Path(tempfile.mkdtemp())
    with instrumented():
        from tests.benchmarks.fuzz_inputs import changed, seeds
        from tests.hostile.doors import enter

        for number, data in enumerate(seeds(target)):
            (corpus / f"seed-{number}").write_bytes(data)
            with contextlib.suppress(BaseException):  # run once to import everything
                enter(target, data, folder)
    # Discard stdout; libFuzzer reports on stderr.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with (found / "counts").open("r+b") as file:
        counts = mmap.mmap(file.fileno(), 0)
    known = {path.stem for path in found.glob("*.txt")}

    def run_input(data: bytes) -> None:
        began, largest = time.process_time(), _peak()
        outcome, fault = "", ""
        try:
            outcome = enter(target, data, folder)
        except BaseException as error:
            fault = _place(error)
            report = traceback.format_exc()
        if not fault:
            if time.process_time() - began > SECONDS:
                fault, report = "slow", f"{time.process_time() - began:.1f} s"
            elif _peak() - largest > MOST_MEMORY:
                fault, report = "large", f"{_peak() >> 20} MB, {largest >> 20} MB before"
        for place, name in enumerate(COUNTED):
            if name in ("files", outcome):
                (value,) = struct.unpack_from("<q", counts, 8 * place)
                struct.pack_into("<q", counts, 8 * place, value + 1)
        if fault and fault not in known:
            known.add(fault)
            (found / f"{fault}.bin").write_bytes(data)
            (found / f"{fault}.txt").write_text(report, "utf-8", "backslashreplace")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        return changed(target, data, lambda own: atheris.Mutate(own, len(own) + 64), seed)[:most]

    words = [
        "fuzz", str(corpus), f"-max_total_time={seconds}", f"-timeout={HANGS}",
        f"-report_slow_units={HANGS}",
        "-rss_limit_mb=0", "-max_len=131072", "-mutate_depth=2", "-len_control=0",
        f"-artifact_prefix={found}/", f"-seed={1 + sum(target.encode())}",
    ]  # fmt: skip
    atheris.Setup(words, run_input, custom_mutator=mutate)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE,) * 2)
    atheris.Fuzz()


def _peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _place(error: BaseException) -> str:
    """Identify an error by its type and the innermost frame in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}kpca_apps{os.sep}" in f.filename] or frames[-1:]
    place = f"{Path(ours[-1].filename).stem}-{ours[-1].lineno}" if ours else "nowhere"
    return f"{type(error).__name__}-{place}"


def campaign(target: str, minutes: float, corpus: Path, found: Path) -> list[object]:
    """Fuzz a target for the given time, restarting after crashes; return a row of results."""
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    (found / "counts").write_bytes(bytes(8 * len(COUNTED)))
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    while (left := 60 * minutes - (time.monotonic() - began)) > 1:
        if not (process := os.fork()):
            with (found / "log").open("ab") as log:
                os.dup2(log.fileno(), 2)
            with contextlib.suppress(BaseException):
                fuzz(target, max(1, round(left)), corpus, found)
            os._exit(1)
        _, status = os.waitpid(process, 0)
        if status and time.monotonic() - began < 5:
            break
    counts = struct.unpack(f"<{len(COUNTED)}q", (found / "counts").read_bytes())
    faults = {path.stem for path in found.iterdir() if path.name not in ("log", "counts")}
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    taken = [f"{seconds / 60:.1f}" for seconds in (time.monotonic() - began, cpu)]
    return [target, *taken, *counts, len(list(corpus.iterdir())), len(faults), *sorted(faults)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for each target")
    parser.add_argument("--targets", nargs="+", help="by default all")
    parser.add_argument("--corpus", type=Path, help="a folder to keep what reaches further")
    parser.add_argument("--found", type=Path, default=Path("found"), help="a folder for faults")
    parser.add_argument("--show", type=Path, help="a file to let in by the door of the target")
    options = parser.parse_args()
    if options.show:
        from tests.hostile.doors import enter

        with tempfile.TemporaryDirectory() as folder:
            print(enter(options.targets[0], options.show.read_bytes(), Path(folder)))
        return 0
    with instrumented():
        for module in AHEAD:
            importlib.import_module(module)
    from tests.hostile.doors import DOORS

    n_faults = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder)
        print("| target | minutes | CPU | files | read | refused | kept | faults |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for target in options.targets or DOORS:
            row = campaign(target, options.minutes, (corpus / target).absolute(),
                           (options.found / target).absolute())  # fmt: skip
            n_faults += int(str(row[7]))
            shown = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]
            print(f"| {' | '.join(shown[:8])} | {' '.join(shown[8:])}", flush=True)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
