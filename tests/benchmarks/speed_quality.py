"""Plot PSNR against CPU seconds per megapixel for every preset and other denoisers.

White noise on the grey copies of a folder's images, default_rng(crc32("name|sigma")), unclipped;
results are clipped to 0..255. One thread; the denoisers take turns on each image, so that other
load on the machine affects all. Settings of the others (h of non-local means, weight of total
variation, level of wavelets) have the best mean PSNR on crops of 256 x 256 of another folder, at
each noise level. `bm3d` (free for non-commercial use) and `cv2` (opencv-python-headless) run if
installed; the package depends on neither. OpenCV's non-local means takes 8-bit images, so that its
noise is rounded and clipped.

    python tests/benchmarks/speed_quality.py FOLDER --tune OTHER [--sigma 15 25 50] [--images 5]
        [--only draft "non-local means"] [--out reports/speed_quality.png]
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from photographs import Image, grey_images, heading, installed_bm3d, psnr, row, with_noise
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, denoise_wavelet
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.options import QUALITIES, Options
from kpca_apps.denoise.passes.planes import denoise_planes

mpl.use("Agg")
import matplotlib.pyplot as plt

CROP, TUNED = 256, 8  # crop size in pixels, and number of crops used for tuning
COLUMNS = ("sigma", "denoiser", "dB", "CPU s / MP", "setting")


class Peer(NamedTuple):
    """A denoiser, and the factors to try on its noise level."""

    run: Callable[[Image, float, float], NDArray[np.floating]]  # (image, sigma, factor) -> image
    factors: tuple[float, ...] = (1.0,)


class Result(NamedTuple):
    psnr: float
    seconds: float  # CPU seconds per megapixel
    factor: float


def ours(quality: str, noisy: Image, sigma: float, _: float) -> NDArray[np.floating]:
    return denoise_planes(noisy[np.newaxis], np.array([sigma]), Options(quality=quality, n_jobs=1))[
        0
    ]


def means(patch: int, distance: int, noisy: Image, sigma: float, factor: float) -> Image:
    return denoise_nl_means(
        noisy, patch_size=patch, patch_distance=distance, h=factor * sigma, sigma=sigma,
        fast_mode=True,
    )  # fmt: skip


def wavelet(noisy: Image, sigma: float, factor: float) -> Image:
    return denoise_wavelet(noisy, sigma=factor * sigma, method="BayesShrink", rescale_sigma=True)


def variation(noisy: Image, sigma: float, factor: float) -> Image:
    return denoise_tv_chambolle(noisy, weight=factor * sigma)


def opencv(noisy: Image, sigma: float, factor: float) -> Image:
    import cv2

    rounded = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
    return cv2.fastNlMeansDenoising(rounded, None, factor * sigma, 7, 21).astype(float)


def peers() -> dict[str, Peer]:
    """Return all installed denoisers, ours first."""
    near = (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
    found = {quality: Peer(partial(ours, quality)) for quality in QUALITIES}
    found |= {
        "non-local means 5, 6": Peer(partial(means, 5, 6), near),
        "non-local means 7, 11": Peer(partial(means, 7, 11), near),
        "wavelets": Peer(wavelet, near),
        "total variation": Peer(variation, near),
    }
    if importlib.util.find_spec("cv2"):
        found["OpenCV's non-local means"] = Peer(opencv, (0.7, 0.8, 0.9, 1.0, 1.2))
    for name, denoiser in installed_bm3d().items():
        found[name] = Peer(lambda noisy, sigma, _, denoiser=denoiser: denoiser(noisy, sigma))
    return found


def tuned(peer: Peer, images: Sequence[tuple[str, Image]], sigma: float) -> float:
    """Return the factor with the best mean PSNR on crops of images that are not measured."""
    if len(peer.factors) == 1:
        return peer.factors[0]
    crops = [(name, clean[:CROP, :CROP]) for name, clean in images]
    noisy = [(clean, with_noise(name, clean, sigma)) for name, clean in crops]
    return max(
        peer.factors,
        key=lambda factor: np.mean([psnr(peer.run(y, sigma, factor), x) for x, y in noisy]),
    )


def measured(
    chosen: dict[str, Peer], factors: dict[str, float], images: list[tuple[str, Image]],
    sigma: float,
) -> dict[str, Result]:  # fmt: skip
    """Run every denoiser on every image in turn."""
    reached = {name: list[float]() for name in chosen}
    seconds = dict.fromkeys(chosen, 0.0)
    for name, clean in images:
        noisy = with_noise(name, clean, sigma)
        for peer_name, peer in chosen.items():
            start = time.process_time()
            result = peer.run(noisy.copy(), sigma, factors[peer_name])
            seconds[peer_name] += time.process_time() - start
            reached[peer_name].append(psnr(result, clean))
    size = sum(clean.size for _, clean in images) / 1e6
    return {
        name: Result(float(np.mean(reached[name])), seconds[name] / size, factors[name])
        for name in chosen
    }


def draw(found: dict[float, dict[str, Result]], path: Path) -> None:
    """Plot PSNR against CPU seconds, one panel per noise level, with our presets joined."""
    figure, panels = plt.subplots(1, len(found), figsize=(4.4 * len(found), 3.8), squeeze=False)
    for panel, (sigma, by_name) in zip(panels[0], found.items(), strict=True):
        line = [by_name[quality] for quality in QUALITIES if quality in by_name]
        panel.plot([r.seconds for r in line], [r.psnr for r in line], "-", color="C0")
        for name, result in by_name.items():
            is_ours = name in QUALITIES
            panel.plot(result.seconds, result.psnr, "o", color="C0" if is_ours else "C7")
            # Rotate the names of the presets, which are close together.
            panel.annotate(
                name, (result.seconds, result.psnr), (-2, 6) if is_ours else (4, -11),
                textcoords="offset points", fontsize=7, rotation=60 if is_ours else 0,
            )  # fmt: skip
        panel.set(
            xscale="log", xlabel="CPU seconds a megapixel", title=f"noise of {sigma:g} in 255"
        )
        panel.margins(x=0.25, y=0.28)
        panel.grid(alpha=0.3)
    panels[0, 0].set_ylabel("mean PSNR in dB")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="clean images, grey or in colour")
    parser.add_argument("--tune", type=Path, required=True, help="other clean images")
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--images", type=int, help="no more than so many")
    parser.add_argument("--only", nargs="+", help="these denoisers alone")
    parser.add_argument("--out", type=Path, help="the picture, a PNG or SVG file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # denoise_wavelet warns about data outside 0..1
    chosen = {name: peer for name, peer in peers().items() if name in (options.only or (name,))}
    images, others = grey_images(options.folder, options.images), grey_images(options.tune, TUNED)
    found = {}
    print(heading(*COLUMNS))
    with threadpool_limits(1):
        if importlib.util.find_spec("cv2"):
            import cv2

            cv2.setNumThreads(1)
        for peer in chosen.values():  # compile and import before timing
            peer.run(np.random.default_rng(0).normal(100, 20, (64, 64)), 20.0, 1.0)
        for sigma in options.sigma:
            factors = {name: tuned(peer, others, sigma) for name, peer in chosen.items()}
            found[sigma] = measured(chosen, factors, images, sigma)
            for name, result in found[sigma].items():
                setting = f"{result.factor:g}" if len(chosen[name].factors) > 1 else ""
                cells = f"{result.psnr:.3f}", f"{result.seconds:.2f}", setting
                print(row(f"{sigma:g}", name, *cells), flush=True)
    if options.out:
        draw(found, options.out)


if __name__ == "__main__":
    main()
