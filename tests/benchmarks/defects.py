"""Compare `--noise auto`, median and bm3d on counts, padded images and images with defects.

Pictures are drawn: blobs, steps and lines of known brightness. Prints the PSNR in dB, with the
range of the clean picture as peak, over the pixels with data:

- counts: photons counted in uint16 and in float32, and the fraction of the light that is kept;
- padding: a rotated picture with 0 or -2000 around it, and the fraction of padding that changed;
- defects: hot pixels, fireflies, dead columns.

`median` is a 3 x 3 median; bm3d (if installed) gets the noise level, and pictures with defective
columns minus the columns' medians.

    python tests/benchmarks/defects.py [--quality fast] [--seeds 2] [--side 192]
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, median_filter, rotate

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.image import as_stored, loses_light

Array = NDArray[np.float64]


class Case(NamedTuple):
    name: str
    noisy: NDArray[np.generic]
    clean: Array
    data: NDArray[np.bool_]
    sigma: float  # noise level in the brightest area


def drawn(side: int, rng: np.random.Generator) -> Array:
    """Draw a picture in 0..1: blobs of two sizes, areas with edges, and thin lines."""
    smooth = gaussian_filter(rng.standard_normal((side, side)), side / 24)
    areas = gaussian_filter(rng.standard_normal((side, side)), side / 12) > 0
    picture = smooth / np.ptp(smooth) + 0.4 * areas
    picture[:, :: side // 6] += 0.1
    return (picture - picture.min()) / np.ptp(picture)


def cases(side: int, seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    clean, everywhere = drawn(side, rng), np.ones((side, side), bool)
    for peak in (1, 3, 10, 30):
        light = peak * clean + 0.05
        counts = rng.poisson(light)
        for kind in ("u2", "f4"):
            yield Case(f"counts {peak} {kind}", counts.astype(kind), light, everywhere, peak**0.5)
    for value, kind in ((0, "f4"), (-2000, "i2")):
        inside = rotate(np.ones((side, side)), 11, order=0, reshape=False) > 0.5
        values = 1000 * clean - 500
        noisy = np.where(inside, values + rng.normal(0, 50, clean.shape), value)
        yield Case(f"padding {value}", noisy.astype(kind), values, inside, 50)
    values = 8000 * clean + 2000
    noisy = values + rng.normal(0, 400, clean.shape)
    for share in (0.001, 0.003, 0.01):
        hot = rng.random(clean.shape) < share
        spoilt = np.where(hot, noisy + rng.uniform(5000, 50000, clean.shape), noisy)
        yield Case(f"hot {share:.1%}", spoilt.astype("u2"), values, everywhere, 400)
    flies = np.where(rng.random(clean.shape) < 0.004, rng.exponential(4e4, clean.shape), 0)
    yield Case("fireflies", (noisy + flies).astype("f4"), values, everywhere, 400)
    spoilt = noisy.copy()
    spoilt[:, [side // 3, side // 2 + 1]] = 0, 65535
    yield Case("dead columns", spoilt.astype("u2"), values, everywhere, 400)


def bm3d_of(case: Case) -> Array | None:
    """Denoise a case with bm3d; return None if bm3d is not installed."""
    try:
        from bm3d import bm3d
    except ImportError:
        return None
    return np.asarray(bm3d(case.noisy.astype(np.float64), case.sigma))


def psnr(found: NDArray[np.floating], case: Case) -> float:
    error = np.mean(np.square(found - case.clean)[case.data])
    return float(10 * np.log10(np.ptp(case.clean) ** 2 / error))


def measured(case: Case, quality: str) -> dict[str, float]:
    found, _ = denoise_with_info(case.noisy, quality=quality)
    dtype = case.noisy.dtype
    stored = as_stored(found, dtype, dithered=loses_light(found, dtype))
    peers: dict[str, Callable[[], Array | None]] = {
        "noisy": lambda: case.noisy.astype(float),
        "median": lambda: median_filter(case.noisy.astype(float), 3),
        "bm3d": lambda: bm3d_of(case),
        "kpca": lambda: found.astype(float),
        "in its type": lambda: stored.astype(float),
    }
    figures = {name: psnr(r, case) for name, of in peers.items() if (r := of()) is not None}
    figures["light"] = float(stored[case.data].mean() / case.clean[case.data].mean())
    outside = ~case.data
    figures["changed"] = float((found != case.noisy)[outside].mean()) if outside.any() else 0.0
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--side", type=int, default=192)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in range(arguments.seeds):
        for case in cases(arguments.side, seed):
            rows.setdefault(case.name, []).append(measured(case, arguments.quality))
    names = [*next(iter(rows.values()))[0]]
    print(f"{'case':14}" + "".join(f"{name:>12}" for name in names))
    for case_name, own in rows.items():
        means = (np.mean([figures[name] for figures in own]) for name in names)
        print(f"{case_name:14}" + "".join(f"{mean:12.2f}" for mean in means))


if __name__ == "__main__":
    main()
