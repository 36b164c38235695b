"""Make noisy copies of photographs that scikit-image carries, and their clean originals.

Five pictures whose photographers gave up all rights, cut to a part and stored in five ways: grey
and colour PNG of 8 bits, TIFF of 16 bits, and a JPEG whose noise went through a camera's own steps
(mosaic, photons, demosaicking, gamma) and is therefore neither white nor the same everywhere. Run
``python datasets/make_photographs.py`` to write ``photographs/noisy`` and ``photographs/clean``
again. Pixels are the same on every machine; bytes depend on the libraries that pack them.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import convolve
from skimage import data

FOLDER = Path(__file__).resolve().parent / "photographs"
GAMMA = 2.2
PHOTONS = 150.0  # at white, a pixel: a high ISO setting
READ_NOISE = 1.5  # electrons
AROUND = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4
BESIDE = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4

Pixels = NDArray[Any]
Reals = NDArray[np.float64]


def generator(name: str) -> np.random.Generator:
    """Return the noise source of a picture."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def white(name: str, clean: Pixels, sigma: float) -> Pixels:
    """Add Gaussian noise of a level in the units of the pixels, and store as the clean picture."""
    most = np.iinfo(clean.dtype).max
    noisy = clean + sigma * generator(name).standard_normal(clean.shape)
    return np.clip(np.rint(noisy), 0, most).astype(clean.dtype)


def developed(light: Reals, rng: np.random.Generator | None) -> Pixels:
    """Return what a camera makes of light (h, w, 3) in 0..1; without noise for None.

    One colour is seen at each pixel, photons are counted, electronics adds its noise; the missing
    colours are interpolated, and the tone curve comes last.
    """
    seen = np.ones(light.shape[:2], dtype=int)
    seen[0::2, 1::2], seen[1::2, 0::2] = 0, 2
    raw = np.take_along_axis(light, seen[..., None], 2)[..., 0]
    if rng is not None:
        electrons = rng.poisson(raw * PHOTONS) + READ_NOISE * rng.standard_normal(raw.shape)
        raw = electrons / PHOTONS
    channels = [
        convolve(raw * (seen == c), BESIDE if c == 1 else AROUND, mode="mirror") for c in range(3)
    ]
    image: Reals = np.clip(np.stack(channels, -1), 0, 1) ** (1 / GAMMA)
    return np.rint(255 * image).astype(np.uint8)


def pictures() -> dict[str, Pixels]:
    """Return every picture by its path below ``photographs``; the JPEG before it is packed."""
    astronaut = data.astronaut()[0:240, 100:340]
    camera = data.camera()[40:296, 100:356]
    text = data.text()
    grey = data.chelsea()[20:260, 90:390].astype(np.float64) @ (0.2125, 0.7154, 0.0721)
    chelsea = np.rint(257 * grey).astype(np.uint16)
    light = (data.coffee()[60:360, 140:540] / 255.0) ** GAMMA
    return {
        "clean/astronaut.png": astronaut,
        "noisy/astronaut.png": white("astronaut", astronaut, 20.0),
        "clean/camera.png": camera,
        "noisy/camera.png": white("camera", camera, 25.0),
        "clean/text.png": text,
        "noisy/text.png": white("text", text, 30.0),
        "clean/chelsea.tif": chelsea,
        "noisy/chelsea.tif": white("chelsea", chelsea, 3000.0),
        "clean/coffee.png": developed(light, None),
        "noisy/coffee.jpg": developed(light, generator("coffee")),
    }


def write(path: Path, pixels: Pixels) -> None:
    """Write one picture in the format its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".tif":
        tifffile.imwrite(path, pixels, photometric="minisblack", metadata=None, software=False)
    elif path.suffix == ".jpg":
        Image.fromarray(pixels).save(path, quality=90)
    else:
        Image.fromarray(pixels).save(path, optimize=True)


if __name__ == "__main__":
    for name, pixels in pictures().items():
        write(FOLDER / name, pixels)
