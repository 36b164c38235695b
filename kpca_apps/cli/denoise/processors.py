"""Choose the numbers of worker processes and threads of a batch."""

from __future__ import annotations

from pathlib import Path

import joblib
from PIL import Image

from kpca_apps.denoise.passes.planes import STRIP_SAMPLES
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.quiet import warnings_ignored

# Bytes of memory of a worker: fixed, per value of its image, and per value denoised at once.
_BASE, _A_SAMPLE, _A_SAMPLE_OF_STRIP = 300_000_000, 30, 60
_START_UP = 100_000  # values denoised in the time that a worker takes to start


def processors(jobs: int | None, samples: list[int], *, stack: bool = False) -> tuple[int, int]:
    """Return the number of worker processes, and of threads for each."""
    jobs = jobs or joblib.cpu_count()
    # Denoise stacks one at a time, as a stack needs much memory.
    return (1, jobs) if stack else share_processors(jobs, samples, available_bytes())


def share_processors(jobs: int, samples: list[int], available: int) -> tuple[int, int]:
    """Return the number of worker processes, and of threads for each.

    `jobs` is the number of processors; `samples` are the numbers of values in each image;
    `available` is the free memory in bytes.

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
    """Return the number of values in an image by its header; if unreadable, the file's bytes."""
    if not path.is_file():  # do not open a pipe; such an input is reported later
        return 0
    try:
        with warnings_ignored(), Image.open(path) as image:
            pixels = image.width * image.height * getattr(image, "n_frames", 1)
            return pixels * min(len(image.getbands()), 3)
    except Exception:  # a damaged file is reported later
        return path.stat().st_size
