"""What the benchmarks of denoising share: photographs of scikit-image, PSNR, rows of Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from skimage import data

# Top left corners: where each photograph shows most.
CORNERS = {
    "astronaut": (0, 100),
    "chelsea": (20, 100),
    "coffee": (100, 150),
    "motorcycle": (100, 200),
    "rocket": (100, 200),
}


def photographs(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and a square cut (size, size, 3) of each photograph, 0 to 255, float64."""
    for name, (top, left) in CORNERS.items():
        whole = data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(data, name)()
        yield name, whole[top : top + size, left : left + size, :3].astype(np.float64)


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return decibels of the image clipped to 0..255."""
    return float(10 * np.log10(255**2 / np.mean((np.clip(image, 0, 255) - clean) ** 2)))


def row(*cells: object) -> str:
    """Return a row of a Markdown table."""
    return "|".join(["", *map(str, cells), ""])
