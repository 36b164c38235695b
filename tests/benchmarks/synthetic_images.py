"""Denoise fourteen kinds of drawn images with fifteen kinds of noise; count images made worse.

Each image cycles through sizes and dtypes and is denoised with `noise="auto"`. Printed for each
noise: the number of images, how many results are farther from the clean image than the input, the
mean gain, and the worst with its image. Without noise: how many were unchanged, and the largest
mean change, in grey levels of 255. Exits with 1 if an image was made worse.

    python tests/benchmarks/synthetic_images.py [--seeds 1] [--sizes 4] [--only stars] [--list]
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from kpca_apps.denoise.denoiser import denoise_with_info

Image = NDArray[np.float64]
Generator = np.random.Generator

SIZES = ((16, 16), (33, 47), (64, 64), (96, 128))
# Dtype, and the values of black and white.
TYPES = (("u1", 0.0, 255.0), ("u2", 0.0, 65535.0), ("f4", 0.0, 1.0), ("f8", -1000.0, 3000.0))


def coordinates(shape: tuple[int, int]) -> tuple[Image, Image]:
    rows, columns = np.indices(shape)
    return rows.astype(float), columns.astype(float)


def clouds(shape: tuple[int, int], rng: Generator) -> Image:
    """Draw light with structure at all scales, as in natural scenes."""
    spectrum = np.fft.rfft2(rng.standard_normal(shape))
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1]))
    frequency[0, 0] = np.inf
    light = np.fft.irfft2(spectrum / frequency, shape)
    return 255.0 * (light - light.min()) / np.ptp(light)


def patches(shape: tuple[int, int], rng: Generator) -> Image:
    """Draw flat areas of arbitrary shape."""
    owner = cKDTree(rng.uniform(0, shape, (12, 2))).query(np.moveaxis(np.indices(shape), 0, -1))[1]
    return rng.uniform(0, 255, 12)[owner]


def letters(shape: tuple[int, int], rng: Generator) -> Image:
    """Draw short dark strokes in lines on white."""
    page = np.full(shape, 255.0)
    for row in range(2, shape[0] - 7, 10):
        for column in range(2, shape[1] - 5, 6):
            glyph = rng.random((3, 2)) < 0.6
            page[row : row + 6, column : column + 4][np.kron(glyph, np.ones((2, 2))) > 0] = 20.0
    return page


def stars(shape: tuple[int, int], rng: Generator) -> Image:
    """Draw points of light on black."""
    points = np.where(rng.random(shape) < 0.01, rng.uniform(500, 4000, shape), 0.0)
    return np.minimum(gaussian_filter(points, 1.0), 255.0)


KINDS: dict[str, Callable[[tuple[int, int], Generator], Image]] = {
    "even": lambda shape, rng: np.full(shape, 90.0),
    "ramp": lambda shape, rng: 255.0 * coordinates(shape)[1] / shape[1],
    "steps": lambda shape, rng: 36.0 * (7 * coordinates(shape)[1] // shape[1]) + 15.0,
    "checkers": lambda shape, rng: 60.0 + 140.0 * (sum(coordinates(shape)) // 5 % 2),
    "stripes": lambda shape, rng: 128.0 + 90.0 * np.sin(2.1 * coordinates(shape)[0]),
    "rings": lambda shape, rng: (
        128.0 + 100.0 * np.cos(np.square(coordinates(shape)).sum(axis=0) / (1.5 * sum(shape)))
    ),
    "disc": lambda shape, rng: (
        40.0 + 170.0 * (np.hypot(*(c - c.mean() for c in coordinates(shape))) < shape[0] / 3)
    ),
    "lines": lambda shape, rng: (
        30.0 + 200.0 * ((coordinates(shape)[0] % 9 == 4) | (coordinates(shape)[1] % 11 == 5))
    ),
    "halftone": lambda shape, rng: (
        255.0 * (clouds(shape, rng) / 255 > 0.5 + 0.4 * np.sin(sum(coordinates(shape))))
    ),
    "fur": lambda shape, rng: (
        128.0 + 250.0 * gaussian_filter(rng.standard_normal(shape), (0.5, 4.0))
    ),
    "clouds": clouds,
    "patches": patches,
    "letters": letters,
    "stars": stars,
}


Noise = Callable[[Image, Generator], Image]  # adds noise to an image in 0..255


def white(sigma: float) -> Noise:
    """Return Gaussian noise with the given standard deviation."""
    return lambda x, rng: x + sigma * rng.standard_normal(x.shape)


def photons(peak: float) -> Noise:
    """Return Poisson noise with the given number of photons at white."""
    return lambda x, rng: rng.poisson(np.maximum(x, 0) / 255 * peak) * 255.0 / peak


def speckle(sigma: float) -> Noise:
    """Return multiplicative noise."""
    return lambda x, rng: x * rng.gamma(sigma**-2, sigma**2, x.shape)


def impulses(share: float) -> Noise:
    """Return salt-and-pepper noise."""
    return lambda x, rng: np.where(
        rng.random(x.shape) < share, rng.choice([0.0, 255.0], x.shape), x
    )


NOISES: dict[str, Noise] = {
    "none": lambda x, rng: x,
    "white 3": white(3.0),
    "white 10": white(10.0),
    "white 30": white(30.0),
    "white 75": white(75.0),
    "photons 200": photons(200.0),
    "photons 30": photons(30.0),
    "photons 5": photons(5.0),
    "speckle .1": speckle(0.1),
    "speckle .3": speckle(0.3),
    "impulses 2%": impulses(0.02),
    "impulses 20%": impulses(0.2),
    "shared": lambda x, rng: x + 30.0 * gaussian_filter(rng.standard_normal(x.shape), 0.7),
    "uniform": lambda x, rng: x + rng.uniform(-25, 25, x.shape),
    "rows": lambda x, rng: x + 8.0 * rng.standard_normal((len(x), 1)),
}


class Case(NamedTuple):
    """One image denoised."""

    noise: str
    name: str
    before: float  # mean squared error on the scale 0..255
    after: float
    change: float  # mean absolute difference between result and input

    @property
    def gain(self) -> float:
        """PSNR gain in dB; infinite if no error remains."""
        return float(10 * np.log10(self.before / self.after)) if self.after else np.inf


def cases(seed: int, sizes: int, quality: str, only: str) -> Iterator[Case]:
    """Denoise every image with every noise, cycling through the sizes."""
    for number, (noise, kind) in enumerate((n, k) for n in NOISES for k in KINDS):
        if only and only not in (kind, noise):
            continue
        for step in range(number, number + sizes):
            shape = SIZES[step % len(SIZES)]
            rng = np.random.default_rng([seed, number, step])
            clean = np.clip(KINDS[kind](shape, rng), 0.0, 255.0)
            dtype, black, span = TYPES[(number + step // 4 + seed) % len(TYPES)]
            unit = span / 255.0

            def stored(
                x: Image, dtype: str = dtype, black: float = black, unit: float = unit
            ) -> Any:
                x = x * unit + black
                limits = np.iinfo(dtype) if dtype[0] == "u" else None
                return (np.clip(np.rint(x), 0, limits.max) if limits else x).astype(dtype)

            truth = stored(clean).astype(np.float64)
            image = stored(NOISES[noise](clean, rng))
            found = denoise_with_info(image, quality=quality, data_range=span)[0]
            before, after, moved = (
                (x.astype(np.float64) - y) / unit
                for x, y in ((image, truth), (found, truth), (found, image.astype(np.float64)))
            )
            name = f"{kind} {shape[0]} x {shape[1]} {dtype}"
            errors = float(np.mean(before**2)), float(np.mean(after**2))
            yield Case(noise, name, *errors, float(np.mean(np.abs(moved))))


def main() -> int:
    """Print a line per noise; return 1 if an image was made worse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sizes", type=int, default=4, help="of four; 1 is short")
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--only", default="", help="one kind of image, or of noise")
    parser.add_argument("--list", action="store_true", help="name every image that became worse")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    found: dict[str, list[Case]] = {}
    for seed in range(arguments.seeds):
        for case in cases(seed, arguments.sizes, arguments.quality, arguments.only):
            found.setdefault(case.noise, []).append(case)
    print(f"{'noise':14}{'images':>7}{'worse':>7}{'mean gain':>11}{'least':>8}")
    n_worse = 0
    for noise, group in found.items():
        worst = min(group, key=lambda case: case.gain)
        worse = [case for case in group if case.after > case.before * (1 + 1e-6)]
        if noise == "none":
            unchanged = sum(case.change == 0 for case in group)
            most = max(group, key=lambda case: case.change)
            print(
                f"{noise:14}{len(group):7}  unchanged: {unchanged}, largest mean change "
                f"{most.change:.2f} ({most.name})"
            )
        else:
            n_worse += len(worse)
            mean = np.mean([min(case.gain, 60.0) for case in group])
            print(
                f"{noise:14}{len(group):7}{len(worse):7}{mean:11.2f}{worst.gain:8.2f}  "
                f"({worst.name})",
                flush=True,
            )
        for case in worse if arguments.list else ():
            print(f"    {case.gain:8.3f} dB, rms {case.before**0.5:.2f} before: {case.name}")
    print(f"{sum(map(len, found.values()))} images, {n_worse} of them worse than before")
    return int(n_worse > 0)


if __name__ == "__main__":
    sys.exit(main())
