"""Kill a batch at a random moment, resume it, and compare the results."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from kpca_apps.denoise.batch.manifest import MANIFEST
from kpca_apps.denoise.batch.run import run_batch
from tests.denoise.toy import SETTINGS, contents, picture, save, smooth

N_IMAGES = 12
PAUSE = 0.03


def make_inputs(folder: Path) -> dict[str, bytes]:
    """Write noisy images, and return the results of an uninterrupted batch."""
    for number in range(N_IMAGES):
        save(folder / "in", f"{number % 3}/{number}.png", picture(number, (40, 50, 3)))
    run_batch([folder / "in"], folder / "whole", SETTINGS, denoise=smooth)
    return all_files(folder / "whole")


def all_files(folder: Path) -> dict[str, bytes]:
    """Return every file of a batch including its record."""
    return contents(folder) | {MANIFEST: (folder / MANIFEST).read_bytes()}


def kill_and_resume(folder: Path, name: str, *, jobs: int, seed: int) -> tuple[int, int]:
    """Run a batch in another process, kill it, and resume it here.

    Return the number of images in place at the kill, and of images that were not done again.
    """
    root = Path(__file__).resolve().parents[2]
    out = folder / name
    command = [sys.executable, "-m", "tests.denoise.toy", str(folder / "in"), str(out)]
    process = subprocess.Popen(
        [*command, str(jobs), str(PAUSE)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "begins\n"
        draw = random.Random(seed)
        # Kill at a random moment of the work on a random image, whatever the load of the machine.
        n_first = draw.randrange(N_IMAGES)
        while process.poll() is None and len(images(out)) < n_first:
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 2 * PAUSE))
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Wait until the killed process's workers, which share the pipe, have exited: a late worker
        # would create a file after the next run has cleaned up.
        process.stdout.read()
    n_before = len(images(out))
    result = run_batch([folder / "in"], out, SETTINGS, denoise=smooth)
    assert result.n_failed == 0
    return n_before, result.n_resumed


def images(folder: Path) -> list[Path]:
    if not folder.exists():
        return []
    return [
        path
        for path in folder.rglob("*.png")
        if path.is_file() and path.name != MANIFEST and not path.name.startswith(".")
    ]
