"""Measure PSNR, SSIM and CPU time of the local denoiser on the 12 grey images of Set12.

The images (01.png to 12.png, "Set12") come with the code of DnCNN (Zhang et al. 2017) and of most
later denoisers. Noise: y = x + sigma * default_rng(crc32("Set12/01|25")).standard_normal,
unclipped; results are clipped to 0..255. One thread.

    python tests/benchmarks/set12.py --data FOLDER [--sigma 15 25 50] [--presets fast balanced high]
                                     [--images 01 02 ...] [--bm3d]

``--factors .9 1.1`` also runs each denoiser at multiples of sigma: the cost of a wrong level.
"""

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from photographs import Denoiser, Image, installed_bm3d, psnr, with_noise
from skimage.io import imread
from skimage.metrics import structural_similarity
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes

NAMES = [f"{number:02}" for number in range(1, 13)]


def ssim(result: Image, clean: Image) -> float:
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    return float(structural_similarity(clean, np.clip(result, 0, 255), data_range=255, **options))


def ours(quality: str, **options: Any) -> Denoiser:
    """Return a preset as a function of an image and its noise level."""

    def denoiser(noisy: Image, sigma: float) -> Image:
        chosen = Options(quality=quality, n_jobs=1, **options)
        return denoise_planes(noisy[None], [sigma], chosen)[0].astype(float)

    denoiser(np.zeros((48, 48)), 25.0)  # compile before timing
    return denoiser


def measured(denoiser: Denoiser, images: dict[str, Image], sigma: float) -> tuple[Any, float]:
    """Return the mean PSNR and SSIM, and CPU seconds per megapixel."""
    figures, seconds = [], 0.0
    for name, clean in images.items():
        noisy, start = with_noise(f"Set12/{name}", clean, sigma), time.process_time()
        result = denoiser(noisy, sigma)
        seconds += time.process_time() - start
        figures.append((psnr(result, clean), ssim(result, clean)))
    return np.mean(figures, axis=0), 1e6 * seconds / sum(image.size for image in images.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with 01.png to 12.png")
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--presets", nargs="*", default=["fast", "balanced", "high"])
    parser.add_argument("--images", nargs="+", default=NAMES)
    parser.add_argument("--bm3d", action="store_true")
    parser.add_argument("--factors", type=float, nargs="*", default=[], help="of a wrong level")
    given = parser.parse_args()
    denoisers = installed_bm3d() if given.bm3d else {}
    denoisers |= {name: ours(name) for name in given.presets}
    for (name, base), factor in product(list(denoisers.items()), given.factors):
        denoisers[f"{name} x {factor:g}"] = lambda noisy, sigma, base=base, factor=factor: base(
            noisy, factor * sigma
        )
    images = {name: imread(given.data / f"{name}.png").astype(float) for name in given.images}
    for sigma in given.sigma:
        seconds: dict[str, float] = {}
        for name, denoiser in denoisers.items():
            with threadpool_limits(1):
                (decibels, similar), seconds[name] = measured(denoiser, images, sigma)
            of_bm3d = (
                f"  {seconds[name] / seconds['bm3d']:.2f} of bm3d" if "bm3d" in seconds else ""
            )
            print(
                f"sigma {sigma:g}  {name:9} {decibels:.3f} dB  SSIM {similar:.4f}  "
                f"{seconds[name]:.1f} CPU s/MP{of_bm3d}",
                flush=True,
            )


if __name__ == "__main__":
    main()
