"""Noise of microscopes: one noisy frame beside the mean of many, every setting beside `auto`.

FOLDER holds noisy/NAME.tif and clean/NAME.tif of the same size, in 8 bits. The baseline is told the
truth: a and c of the variance a x + c, fitted to noisy minus clean, for BM3D on the generalised
Anscombe transform (`bm3d`, left out where it is not installed), with the same inverse as ours.

    python tests/benchmarks/microscopes.py FOLDER --quality fast
"""

from __future__ import annotations

import argparse
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from skimage.io import imread
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.estimate.law import measure_laws
from kpca_apps.denoise.noise.poisson import anscombe, inverse_anscombe

SETTINGS = ("auto", "gaussian", "poisson", "camera")
psnr = partial(peak_signal_noise_ratio, data_range=255)


def true_law(noisy: np.ndarray, clean: np.ndarray) -> tuple[float, float]:
    """Return slope and constant of the squared noise over the clean brightness."""
    slope, constant = np.polyfit(clean.ravel(), np.square(noisy - clean).ravel(), 1)
    return float(slope), float(constant)


def stabilised_bm3d(noisy: np.ndarray, gain: float, constant: float) -> np.ndarray:
    """Denoise by BM3D between the generalised Anscombe transform and its unbiased inverse."""
    from bm3d import bm3d

    dark = constant / gain
    roots = anscombe((noisy + dark) / gain)
    low, width = roots.min(), float(np.ptp(roots))
    cleaned = bm3d((roots - low) / width, 1.0 / width) * width + low
    return np.asarray(inverse_anscombe(cleaned) * gain - dark)


def main() -> None:
    """Print a line a picture and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quality", default="fast", choices=["fast", "balanced", "high"])
    arguments = parser.parse_args()
    names = [*SETTINGS, *(["bm3d"] if find_spec("bm3d") else [])]
    print(f"{'':14}{'noisy':>8}" + "".join(f"{name:>10}" for name in names) + "  law, true law")
    rows = []
    for path in sorted((arguments.folder / "noisy").glob("*.tif")):
        noisy = imread(path)
        clean = imread(arguments.folder / "clean" / path.name).astype(np.float64)
        truth = true_law(noisy.astype(np.float64), clean)
        row = [psnr(clean, noisy.astype(np.float64))]
        for noise in SETTINGS:
            found, _ = denoise_with_info(noisy, noise=noise, quality=arguments.quality)
            row.append(psnr(clean, found))
        if "bm3d" in names:
            row.append(psnr(clean, stabilised_bm3d(noisy.astype(np.float64), *truth)))
        found = measure_laws(noisy[np.newaxis].astype(np.float32), 1.0)[0]
        law = "none" if found is None else f"{found.gain:.2f} x {found.constant:+.1f}"
        print(
            f"{path.stem:14}" + f"{row[0]:8.2f}" + "".join(f"{v:10.2f}" for v in row[1:]),
            f" {law}, {truth[0]:.2f} x {truth[1]:+.1f}",
            flush=True,
        )
        rows.append(row)
    means = np.mean(rows, axis=0)
    print(f"{'mean':14}{means[0]:8.2f}" + "".join(f"{value:10.2f}" for value in means[1:]))


if __name__ == "__main__":
    main()
