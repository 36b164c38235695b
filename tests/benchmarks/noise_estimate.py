"""Measure errors of the noise level on clean photographs, and their effect on denoising.

The folder holds clean photographs; coloured ones are turned to grey. White noise of a known level
is added to one crop of every size, at a position drawn from the photograph's name, and to the
whole. A second table denoises the crops with the estimated level (``noise="auto"``). The published
figures use photographs on which no constant was chosen: the 24 of Kodak (at 500 x 500 pixels, from
the code of FFDNet, Zhang et al. 2018), and gravel, cat (chelsea), tissue (ihc) and coffee of
scikit-image.

    python tests/benchmarks/noise_estimate.py --data FOLDER [--denoise 96x96 ...]
"""

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from skimage import io
from skimage.restoration import estimate_sigma

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.estimate.level import estimate_noise

SIZES = {"64x48": (48, 64), "96x96": (96, 96), "192x192": (192, 192), "whole": None}
SIGMAS = (0, 2, 5, 15, 25)
LUMINANCE = (0.299, 0.587, 0.114)


def clean_crops(folder: Path, size: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and a grey crop of each photograph, in 0..255."""
    for path in sorted(folder.iterdir()):
        image = io.imread(path)
        grey = np.rint(image[..., :3] @ LUMINANCE) if image.ndim == 3 else image
        shape = SIZES[size] or grey.shape
        rng = np.random.default_rng(zlib.crc32(f"{path.stem}|{size}".encode()))
        top, left = (
            int(rng.integers(0, a - b + 1)) for a, b in zip(grey.shape, shape, strict=True)
        )
        yield path.stem, grey[top : top + shape[0], left : left + shape[1]].astype(np.float64)


def with_noise(clean: np.ndarray, name: str, size: str, sigma: float) -> np.ndarray:
    """Add white noise that depends only on the arguments."""
    seed = zlib.crc32(f"{name}|{size}|{sigma}".encode())
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def estimates(folder: Path, size: str, sigma: float) -> str:
    """Return a table row with the errors of our estimator and of scikit-image's."""
    ours, theirs, established = [], [], 0
    for name, clean in clean_crops(folder, size):
        noisy = with_noise(clean, name, size, sigma)
        found = estimate_noise(noisy)
        established += found.established
        ours.append(found.sigma - sigma)
        theirs.append(float(estimate_sigma(noisy)) - sigma)
    rmse, other = (float(np.sqrt(np.mean(np.square(errors)))) for errors in (ours, theirs))
    return (
        f"| {size} | {sigma} | {rmse:.2f} | {np.median(ours):+.2f} "
        f"| {min(ours):+.1f} to {max(ours):+.1f} | {established} of {len(ours)} | {other:.2f} |"
    )


def outcomes(folder: Path, size: str, sigma: float, quality: str) -> str:
    """Return a table row on denoising with the estimated level."""
    changes, gains = [], []
    for name, clean in clean_crops(folder, size):
        noisy = with_noise(clean, name, size, sigma)
        denoised, _ = denoise_with_info(noisy, noise="auto", data_range=255, quality=quality)
        changes.append(float(np.mean(np.abs(denoised - noisy))))
        if sigma:
            before, after = (float(np.mean((x - clean) ** 2)) for x in (noisy, denoised))
            gains.append(10 * np.log10(before / after))
    little = sum(change < 0.5 for change in changes)
    if not sigma:
        return f"| {size} | 0 | {little} of {len(changes)} | {max(changes):.2f} | | |"
    worse = sum(gain < -0.3 for gain in gains)
    worst, mean = min(gains), np.mean(gains)
    return f"| {size} | {sigma} | | | {worse} of {len(gains)}, {worst:+.2f} dB | {mean:+.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=SIZES)
    parser.add_argument("--sigmas", type=int, nargs="+", default=SIGMAS)
    parser.add_argument("--denoise", nargs="*", default=[], choices=SIZES)
    parser.add_argument("--quality", default="fast")
    arguments = parser.parse_args()
    print("| size | sigma | rmse | median error | errors | established | estimate_sigma: rmse |")
    print("|---|---|---|---|---|---|---|")
    for size in arguments.sizes:
        for sigma in arguments.sigmas:
            print(estimates(arguments.data, size, sigma), flush=True)
    if arguments.denoise:
        print()
        print("| size | sigma | change < .5 | most | worse by .3 dB, worst | mean gain |")
        print("|---|---|---|---|---|---|")
    for size in arguments.denoise:
        for sigma in arguments.sigmas:
            if sigma != 2:
                print(outcomes(arguments.data, size, sigma, arguments.quality), flush=True)


if __name__ == "__main__":
    main()
