"""Write DNG files for tests: a mosaic with TIFF tags as the DNG specification defines them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

# From daylight XYZ to camera colours; LibRaw needs a matrix.
_MATRIX = np.array([[0.9, -0.2, -0.1], [-0.4, 1.3, 0.1], [-0.05, 0.2, 0.6]])
NEUTRAL = (0.5, 1.0, 0.65)  # the sensor's response to grey
# Fujifilm's colour filters, 6 x 6 pixels.
XTRANS = "GGRGGBGGBGGRBRGRBGGGBGGRGGRGGBRBGBRG"
CFA, LINEAR, GREY = 32803, 34892, 1


def write_dng(
    path: Path,
    mosaic: NDArray[np.uint16],
    *,
    pattern: str = "RGGB",
    black: tuple[int, ...] = (256,),
    white: int = 4095,
    orientation: int = 1,
    noise: tuple[float, ...] = (),
    meaning: int = CFA,
    byteorder: str = "<",
    neutral: tuple[float, ...] = NEUTRAL,
    matrix: NDArray[np.float64] = _MATRIX,
    more: Sequence[tuple[Any, ...]] = (),
) -> Path:
    """Write a DNG of a mosaic, or of a picture if `meaning` is LINEAR or GREY; return the path."""
    side = int(len(pattern) ** 0.5)

    def ratios(values: NDArray[np.float64]) -> tuple[int, ...]:
        return tuple(n for value in values.ravel() for n in (round(float(value) * 10000), 10000))

    tags = [
        (271, 2, 0, b"Maker", True),
        (272, 2, 0, b"Model", True),
        (274, 3, 1, orientation, True),
        (306, 2, 0, b"2026:01:02 03:04:05", True),
        (50706, 1, 4, bytes([1, 4, 0, 0]), True),
        (50708, 2, 0, b"Maker Model", True),
        (50714, 3, len(black), black, True),
        (50717, 3, 1, white, True),
        (50721, 10, 9, ratios(matrix), True),
        (50778, 3, 1, 21, True),
    ]
    if neutral:
        tags.append((50728, 5, 3, ratios(np.array(neutral)), True))
    if meaning == CFA:
        letters = bytes("RGB".index(letter) for letter in pattern)
        tags += [(33421, 3, 2, (side, side), True), (33422, 1, len(letters), letters, True)]
    if len(black) == 4:
        tags.append((50713, 3, 2, (2, 2), True))
    tags += more
    if noise:
        tags.append((51041, 12, len(noise), noise, True))
    planes = {"planarconfig": "contig"} if mosaic.ndim == 3 else {}
    with tifffile.TiffWriter(path, byteorder=byteorder) as file:
        file.write(
            mosaic, photometric=meaning, extratags=tags, metadata=None, software=False, **planes
        )
    return path


def mosaic_of(light: NDArray[np.float64], pattern: str = "RGGB") -> NDArray[np.float64]:
    """Return the mosaic (h, w) that a sensor records of light (h, w, 3)."""
    seen, side = np.empty(light.shape[:2]), int(len(pattern) ** 0.5)
    for place, letter in enumerate(pattern):
        cut = np.s_[place // side :: side, place % side :: side]
        seen[cut] = light[..., "RGB".index(letter)][cut]
    return seen


def exposed(mosaic: NDArray[np.float64], a: float, b: float, seed: int = 0) -> NDArray[np.float64]:
    """Return a mosaic with photon and read noise of variance a x + b."""
    rng = np.random.default_rng(seed)
    return rng.poisson(mosaic / a) * a + np.sqrt(b) * rng.standard_normal(mosaic.shape)
