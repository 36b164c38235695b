"""Measure PSNR and CPU seconds per megapixel of presets on camera and Poisson noise.

Camera noise: pairs of a JPEG photograph and the mean of many photographs of the scene ("PolyU",
files that end in `_real.JPG` and `_mean.JPG`), evenly sampled from the folder, colour; the noise is
measured. Poisson noise: grey copies of clean photographs, a given number of photons at white, noise
from default_rng(crc32("name|photons")); the noise is measured, its kind given or estimated. One
thread; the time includes measuring, which is also shown separately.

    python tests/benchmarks/kinds_of_noise.py PAIRS CLEAN [--images 6] [--photons 30 100]
        [--quality draft fast]
"""

import argparse
import time
import warnings
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from photographs import grey_images, heading, psnr, row
from skimage.io import imread
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.denoiser import Given, clean_image
from kpca_apps.denoise.options import Options

COLUMNS = "noise", "requested", "quality", "noisy dB", "dB", "CPU s / MP", "of it measuring"


class Case(NamedTuple):
    """A noisy image and its clean version, in 0..255."""

    noisy: NDArray[np.uint8] | NDArray[np.float64]
    clean: NDArray[np.floating]


def pairs(folder: Path, most: int) -> list[Case]:
    paths = sorted(folder.glob("*_real.JPG"))
    wanted = [paths[int(place)] for place in np.linspace(0, len(paths) - 1, most)]
    return [
        Case(imread(path), imread(str(path).replace("_real", "_mean")).astype(float))
        for path in wanted
    ]


def counted(folder: Path, most: int, photons: float) -> list[Case]:
    cases = []
    for name, clean in grey_images(folder, most):
        rng = np.random.default_rng(zlib.crc32(f"{name}|{photons:g}".encode()))
        cases.append(Case(rng.poisson(clean / 255 * photons) * 255 / photons, clean))
    return cases


def measured(cases: list[Case], noise: str, quality: str) -> tuple[float, float, float]:
    """Return the mean PSNR, and CPU seconds per megapixel in total and for the estimate."""
    seconds, found, pixels = [0.0, 0.0], [], 0
    for noisy, clean in cases:
        axis = -1 if noisy.ndim == 3 else None
        pixels += noisy.shape[0] * noisy.shape[1]
        for place, strength in enumerate((1.0, 0.0)):
            options = Options(noise=noise, quality=quality, strength=strength, n_jobs=1)
            start = time.process_time()
            cleaned = clean_image(noisy, options, Given(data_range=255), channel_axis=axis)
            seconds[place] += time.process_time() - start
            if strength:
                found.append(psnr(cleaned.at(1.0), clean))
    return float(np.mean(found)), seconds[0] / pixels * 1e6, seconds[1] / pixels * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path, help="photographs with noise, and their means")
    parser.add_argument("clean", type=Path, help="clean images, grey or in colour")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--photons", type=float, nargs="+", default=[30.0, 100.0])
    parser.add_argument("--quality", nargs="+", default=["draft", "fast"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = {("camera", "camera"): pairs(options.pairs, options.images)}
    for photons in options.photons:
        light = counted(options.clean, options.images, photons)
        kinds |= {(f"{photons:g} photons", noise): light for noise in ("poisson", "auto")}
    print(heading(*COLUMNS))
    with threadpool_limits(1):
        for quality in options.quality:
            # Compile before timing.
            noise = np.random.default_rng(0).normal(100, 20, (128, 128))
            clean_image(noise, Options(quality=quality, n_jobs=1))
        for (kind, noise), cases in kinds.items():
            noisy = float(np.mean([psnr(case.noisy.astype(float), case.clean) for case in cases]))
            for quality in options.quality:
                found, seconds, measuring = measured(cases, noise, quality)
                cells = f"{noisy:.2f}", f"{found:.2f}", f"{seconds:.2f}", f"{measuring:.2f}"
                print(row(kind, noise, quality, *cells), flush=True)


if __name__ == "__main__":
    main()
