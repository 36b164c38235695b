"""Shared code of the denoising benchmarks: images, noise, PSNR, bm3d, Markdown rows."""

import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from skimage import data
from skimage.io import imread

Image = NDArray[np.float64]
Denoiser = Callable[[Image, float], Image]  # (image, noise level) -> image

# Top left corners of the most detailed part of each photograph.
CORNERS = {
    "astronaut": (0, 100),
    "chelsea": (20, 100),
    "coffee": (100, 150),
    "motorcycle": (100, 200),
    "rocket": (100, 200),
}
GREY = (0.299, 0.587, 0.114)  # JPEG's luma weights, rounded, as in the literature's grey copies
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")


def photographs(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and a square crop (size, size, 3) of each photograph, 0..255, float64."""
    for name, (top, left) in CORNERS.items():
        whole = data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(data, name)()
        yield name, whole[top : top + size, left : left + size, :3].astype(np.float64)


def in_grey(pixels: np.ndarray) -> Image:
    pixels = pixels.astype(float)
    return np.round(pixels[..., :3] @ GREY) if pixels.ndim == 3 else pixels


def grey_images(folder: Path, most: int | None) -> list[tuple[str, Image]]:
    """Return names and grey values of a folder's images, at most `most`, evenly sampled."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if most is not None and most < len(paths):
        paths = [paths[int(place)] for place in np.linspace(0, len(paths) - 1, most)]
    return [(path.stem, in_grey(imread(path))) for path in paths]


def with_noise(name: str, clean: Image, sigma: float) -> Image:
    """Add unclipped white noise seeded by the image name and level."""
    rng = np.random.default_rng(zlib.crc32(f"{name}|{sigma:g}".encode()))
    return clean + sigma * rng.standard_normal(clean.shape)


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return PSNR in dB of the image clipped to 0..255."""
    return float(10 * np.log10(255**2 / np.mean((np.clip(image, 0, 255) - clean) ** 2)))


def installed_bm3d() -> dict[str, Denoiser]:
    """Return bm3d by name; if not installed (it is for non-commercial use only), print a note."""
    if find_spec("bm3d") is None:
        print("bm3d is skipped: pip install bm3d")
        return {}
    from bm3d import bm3d, bm3d_rgb

    return {"bm3d": lambda noisy, sigma: (bm3d_rgb if noisy.ndim == 3 else bm3d)(noisy, sigma)}


def row(*cells: object) -> str:
    """Format a row of a Markdown table."""
    return "|".join(["", *map(str, cells), ""])


def heading(*columns: object) -> str:
    """Format the first two lines of a Markdown table."""
    return f"{row(*columns)}\n" + "|---" * len(columns) + "|"
