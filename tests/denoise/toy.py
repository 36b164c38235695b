"""A fast denoiser, pictures to try it on, and folder contents, for tests of batches.

As a script, denoise a folder and print a line at the start, so that a test can kill it.
"""

import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from kpca_apps.denoise.batch.manifest import MANIFEST, RECORDS
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.errors import InputError

SETTINGS = {"weight": 0.5}


Info = partial(
    DenoiseInfo,
    noise="gaussian",
    sigma=5.0,
    channel_sigma=(5.0,),
    estimated=True,
    correlated=False,
    data_range=255.0,
)


def smooth(
    pixels: np.ndarray, channel_axis: int | None, weight: float = 0.5, pause: float = 0.0
) -> tuple[np.ndarray, DenoiseInfo]:
    """Average each pixel with its left neighbour."""
    assert (channel_axis == -1) == (pixels.ndim == 3)
    time.sleep(pause)
    values = pixels.astype(np.float32)
    return (1 - weight) * values + weight * np.roll(values, 1, axis=1), Info()


def unheard(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, DenoiseInfo]:
    """Refuse to run where a keyboard interrupt would be handled."""
    if signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        raise InputError("an interrupt would be heard")
    return smooth(pixels, channel_axis)


def picture(seed: int, shape: tuple[int, ...] = (24, 30)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def save(folder: Path, name: str, pixels: np.ndarray, **options: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, except records, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and path.parent.name != RECORDS
    }


def main(source: str, out: str, jobs: str, pause: str) -> None:
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    run_batch([source], out, SETTINGS, denoise=partial(smooth, pause=float(pause)), jobs=int(jobs))


if __name__ == "__main__":
    main(*sys.argv[1:])
