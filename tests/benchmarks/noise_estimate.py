"""How well the noise level is found, on pictures with white noise of a known level.

The folder holds grey images; for the published figures it is Set12, the twelve pictures of the
denoising literature (obtainable with the code of DnCNN, Zhang et al. 2017).

    python tests/benchmarks/noise_estimate.py --data Set12
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import numpy as np
from skimage import io
from skimage.restoration import estimate_sigma

from kpca_apps.denoise.noise import estimate_noise


def row(folder: Path, sigma: int) -> str:
    """Return one line of the table: the errors of both estimators over the images."""
    ours, rival, correlated = [], [], 0
    paths = sorted(folder.glob("*.png"))
    for path in paths:
        clean = io.imread(path).astype(np.float64)
        seed = zlib.crc32(f"{folder.name}/{path.stem}|{sigma}".encode())
        noisy = clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)
        estimate = estimate_noise(noisy)
        ours.append(estimate.sigma - sigma)
        rival.append(estimate_sigma(noisy) - sigma)
        correlated += estimate.correlated
    rmse, other = (float(np.sqrt(np.mean(np.square(errors)))) for errors in (ours, rival))
    return (
        f"| {sigma} | {rmse:.2f} | {np.mean(ours):+.2f} | {min(ours):+.2f} to {max(ours):+.2f} "
        f"| {correlated} of {len(paths)} | {other:.2f} |"
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sigma", type=int, nargs="+", default=[5, 15, 25, 50])
    arguments = parser.parse_args()
    print("| sigma | rmse | mean error | range | called correlated | estimate_sigma: rmse |")
    print("|---|---|---|---|---|---|")
    for sigma in arguments.sigma:
        print(row(arguments.data, sigma))


if __name__ == "__main__":
    main()
