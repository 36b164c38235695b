"""How many processors denoise a batch: worker processes, and threads for each."""

from __future__ import annotations

from pathlib import Path

import joblib
from PIL import Image

from kpca_apps.denoise.passes.planes import STRIP_SAMPLES
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.quiet import warnings_ignored

# Bytes a worker takes: for itself, for the strip it works on, and in buffers of the image's size.
_BASE, _A_SAMPLE, _A_SAMPLE_OF_STRIP = 300_000_000, 30, 60
_START_UP = 100_000  # values denoised in the time a worker takes to start


def processors(asked: int | None, samples: list[int], *, stack: bool = False) -> tuple[int, int]:
    """Return the worker processes for images of so many values, and the threads for each."""
    # A stack takes much memory, which is looked at when its size is known: one at a time.
    if stack:
        return 1, asked or joblib.cpu_count()
    return share_processors(asked or joblib.cpu_count(), samples, available_bytes())


def share_processors(jobs: int, samples: list[int], available: int) -> tuple[int, int]:
    """Return how many worker processes to take, and how many threads for each.

    `jobs` are processors to use, `samples` the values in each image, `available` bytes of memory.

    >>> share_processors(8, [250_000] * 100, 64 * 10**9)
    (8, 1)
    >>> share_processors(8, [250_000] * 3, 64 * 10**9)
    (3, 2)
    >>> share_processors(8, [36_000_000] * 100, 8 * 10**9)
    (4, 2)
    >>> share_processors(8, [1_000] * 20, 64 * 10**9)
    (1, 8)
    """
    largest = max(samples, default=0)
    each = _BASE + _A_SAMPLE * largest + _A_SAMPLE_OF_STRIP * min(largest, STRIP_SAMPLES)
    worthwhile = 1 + sum(samples) // _START_UP
    workers = max(1, min(jobs, len(samples), worthwhile, available // each))
    return workers, max(1, jobs // workers)


def count_samples(path: Path) -> int:
    """Return the number of values in an image file, by its header; else a guess by its size."""
    if not path.is_file():
        # A pipe would never end; what it is, is said when its turn comes.
        return 0
    try:
        with warnings_ignored(), Image.open(path) as image:
            pixels = image.width * image.height * getattr(image, "n_frames", 1)
            return pixels * min(len(image.getbands()), 3)
    except Exception:
        # Whatever is wrong with the file is said when its turn comes.
        return path.stat().st_size
