"""PSNR, SSIM and CPU time of the local denoiser on the 12 grey images of the literature.

The images (01.png to 12.png, "Set12") come with the code of DnCNN (Zhang et al. 2017) and of
most denoisers since. Noise: y = x + sigma * default_rng(crc32("Set12/01|25")).standard_normal,
not clipped; results are clipped to 0..255. One thread. `bm3d` (free for non-commercial use) is
run side by side when asked for, and is no dependency of ours.

    python tests/benchmarks/set12.py --data FOLDER [--sigma 15 25 50] [--presets fast balanced high]
                                     [--images 01 02 ...] [--bm3d] [--method rbf --bandwidth 4]

``--factors .9 1.1`` runs each again, told sigma times each factor: what a wrong level costs.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from photographs import psnr
from skimage.io import imread
from skimage.metrics import structural_similarity
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes

Image = NDArray[np.float64]
Denoiser = Callable[[Image, float], Image]

NAMES = [f"{number:02}" for number in range(1, 13)]


@dataclass
class Tally:
    """What a denoiser reached at one noise level."""

    psnr: list[float] = field(default_factory=list)
    ssim: list[float] = field(default_factory=list)
    seconds: float = 0.0
    pixels: int = 0

    def add(self, clean: Image, noisy: Image, sigma: float, denoiser: Denoiser) -> None:
        start = time.process_time()
        result = denoiser(noisy, sigma)
        self.seconds += time.process_time() - start
        self.pixels += clean.size
        self.psnr.append(psnr(result, clean))
        self.ssim.append(ssim(clean, result))

    @property
    def per_megapixel(self) -> float:
        return self.seconds / self.pixels * 1e6


def load_noisy(folder: Path, name: str, sigma: float) -> tuple[Image, Image]:
    """Return an image and its noisy copy, the same for everyone."""
    clean = imread(folder / f"{name}.png").astype(float)
    rng = np.random.default_rng(zlib.crc32(f"Set12/{name}|{sigma:g}".encode()))
    return clean, clean + sigma * rng.standard_normal(clean.shape)


def ssim(clean: Image, result: Image) -> float:
    return float(
        structural_similarity(
            clean, np.clip(result, 0, 255), data_range=255, gaussian_weights=True, sigma=1.5,
            use_sample_covariance=False,
        )
    )  # fmt: skip


def ours(quality: str, **options: Any) -> Denoiser:
    """One of our presets as a function of an image and its noise level."""

    def denoiser(noisy: Image, sigma: float) -> Image:
        chosen = Options(quality=quality, n_jobs=1, **options)
        return denoise_planes(noisy[None], [sigma], chosen)[0].astype(float)

    denoiser(np.zeros((48, 48)), 25.0)  # compiled before the clock starts
    return denoiser


def bm3d_denoiser() -> Denoiser:
    from bm3d import bm3d

    return lambda noisy, sigma: np.asarray(bm3d(noisy, sigma))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with 01.png to 12.png")
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--presets", nargs="*", default=["fast", "balanced", "high"])
    parser.add_argument("--images", nargs="+", default=NAMES)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--content", default="photo")
    parser.add_argument("--bm3d", action="store_true")
    parser.add_argument("--factors", type=float, nargs="*", default=[], help="of a wrong level")
    options = parser.parse_args()
    denoisers = {
        name: ours(
            name,
            method=options.method,
            bandwidth=options.bandwidth,
            content=options.content,
        )
        for name in options.presets
    }
    if options.bm3d:
        denoisers = {"bm3d": bm3d_denoiser(), **denoisers}
    for (name, told), factor in product(list(denoisers.items()), options.factors):
        denoisers[f"{name} x {factor:g}"] = lambda noisy, sigma, told=told, factor=factor: told(
            noisy, factor * sigma
        )
    for sigma in options.sigma:
        baseline = None
        for name, denoiser in denoisers.items():
            tally = Tally()
            for image in options.images:
                with threadpool_limits(1):
                    tally.add(*load_noisy(options.data, image, sigma), sigma, denoiser)
            baseline = tally if name == "bm3d" else baseline
            ratio = f"  {tally.seconds / baseline.seconds:.2f} of bm3d" if baseline else ""
            print(
                f"sigma {sigma:g}  {name:9} {np.mean(tally.psnr):.3f} dB  "
                f"SSIM {np.mean(tally.ssim):.4f}  {tally.per_megapixel:.1f} CPU s/MP{ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
