"""Inject faults into commands on all sources and outputs; check that nothing is lost or partial.

``kill``
    Kill all processes at a random time, or before a random disk operation (opening, renaming,
    removing); kill the first process alone, one of its children, or a worker of a cluster.
``signals``
    Send SIGTERM, SIGHUP, SIGINT and SIGQUIT in turn at a random moment: commands exit within two
    seconds. Experiments of papers are excluded, because they first write finished results.
``disk``
    Run commands on a disk without room for their results (a tmpfs in a separate namespace).
``memory``
    Run commands with less memory than they need (``RLIMIT_AS``).
``twice``
    Start commands a second time in the same folder while the first is running.
``clock``
    Kill commands while the clock jumps by years, and shift the times of their files by years.

Afterwards a file under a final name must be complete: either the earlier one, or that of an
undisturbed run; other names mark unfinished files, which only killed runs leave behind. Commands
print one line. Remaining processes exit by themselves. Running the same command again succeeds,
gives the bytes of an undisturbed run except for times in ``run.json``, and leaves no unfinished
files; if it resumes, finished work is not repeated.

::

    python -m tests.benchmarks.faults kill --times 500
    python -m tests.benchmarks.faults disk --times 100
    python -m tests.benchmarks.faults kill --times 20 --only "denoise images"

It needs Linux, Dask, DuckDB and moto's server, and exits with 1 if anything was lost.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.faults.forked import import_modules
from tests.faults.kinds import FAULTS, Fault
from tests.faults.scenes import SCENES, Scene
from tests.faults.servers import bucket, cluster
from tests.faults.stage import LossError, Played, Stage, play, prepare

_SMALL_DISK = """
mount --make-rprivate / && mount -t tmpfs -o size=96m tmpfs "$1" || exit 9
shift
exec "$@"
"""


def disturb(
    stage: Stage, played: Played, fault: Fault, kinds: tuple[str, ...], times: int, seed: int
) -> tuple[Counter[str], int]:
    """Disturb runs of a command; count the disturbed runs by kind, and the runs with errors."""
    draw, counts, losses, n_late = random.Random(f"{seed} {played.scene.name}"), Counter(), 0, 0
    while counts.total() < times and n_late < times + 5:
        kind = kinds[(counts.total() + n_late) % len(kinds)]
        try:
            was_disturbed = fault(stage, played, kind, draw)
        except (LossError, TimeoutError) as loss:
            losses, was_disturbed = losses + 1, True
            print(f"    {played.scene.name}, {kind}: {loss}", flush=True)
            for left in (stage.folder / "filler", *stage.folder.glob("run-*")):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        counts[kind] += was_disturbed
        n_late += not was_disturbed
    return counts, losses


def chosen(times: int, only: str, fault: str) -> list[tuple[Scene, int]]:
    """Select scenes and repetitions; leave out scenes with servers if disk or memory is short."""
    scenes = [
        scene
        for scene in SCENES
        if re.search(only, scene.name)
        and not (fault in ("disk", "memory") and scene.needs)
        and not (fault == "signals" and scene.name == "papers")
        and not (fault != "signals" and scene.requests)
    ]
    if fault == "signals":
        return [(scene, times) for scene in scenes]
    whole = sum(scene.share for scene in scenes)
    return [(scene, max(1, round(times * scene.share / whole))) for scene in scenes]


@contextmanager
def _folder() -> Iterator[Path]:
    """Create a temporary folder that forked processes do not delete, unlike tempfile's class."""
    folder = Path(tempfile.mkdtemp(prefix="kpca-faults-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Disturb runs of each scene; print how many failed a check, and return 1 if any did."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", default="", help="scenes whose name this finds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    selection = arguments.times, arguments.only, arguments.fault
    with ExitStack() as stack:
        folder = arguments.folder
        if folder is None:
            folder = stack.enter_context(_folder())
            if arguments.fault == "disk":
                again = [sys.executable, "-m", "tests.benchmarks.faults", *sys.argv[1:]]
                apart = ["unshare", "-rm", "sh", "-c", _SMALL_DISK, "sh", str(folder), *again]
                return os.spawnvp(os.P_WAIT, "unshare", [*apart, "--folder", str(folder)])
        import_modules(("kpca_apps.cli.main",))
        stage = Stage(folder, stack.enter_context(_folder()) / "tmp")
        prepare(stage, [scene for scene, _ in chosen(*selection)])
        return _disturb_all(stage, arguments, stack)


def _disturb_all(stage: Stage, arguments: argparse.Namespace, stack: ExitStack) -> int:
    fault, kinds = FAULTS[arguments.fault]
    all_counts, all_losses = Counter[str](), 0
    for scene, times in chosen(arguments.times, arguments.only, arguments.fault):
        if scene.needs == "cluster" and not stage.cluster:
            stage.cluster, stage.workers = stack.enter_context(cluster(stage.folder))
        with ExitStack() as for_scene:
            if scene.needs == "bucket":
                table = stage.folder / "in" / "birds.csv"
                stage.store = for_scene.enter_context(bucket(table))
            began = os.times()
            played = play(stage, scene, is_timed=arguments.fault in ("kill", "signals"))
            counts, losses = disturb(
                stage, played, fault, kinds or scene.kinds, times, arguments.seed
            )
            stage.store = None
        spent = sum(os.times()[:4]) - sum(began[:4])
        print(
            f"{scene.name:46s} {played.seconds:5.2f} s {played.n_steps:5d} steps "
            f"{counts.total():4d} times {losses:3d} losses {spent:6.1f} CPU s",
            flush=True,
        )
        all_counts, all_losses = all_counts + counts, all_losses + losses
    by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(all_counts.items()))
    print(f"{all_counts.total()} times ({by_kind}), {all_losses} losses")
    return int(all_losses > 0)


if __name__ == "__main__":
    sys.exit(main())
