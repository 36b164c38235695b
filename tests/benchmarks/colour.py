"""Denoise colour photographs with white noise; compare with scikit-image and bm3d.

Non-local means and wavelets get the true level and the best of three settings, chosen with the
clean image.

    python tests/benchmarks/colour.py --sigma 25 --bm3d
"""

import argparse
from functools import partial

import numpy as np
from photographs import Denoiser, heading, installed_bm3d, photographs, psnr, row
from skimage.restoration import denoise_nl_means, denoise_wavelet

from kpca_apps.denoise.denoiser import denoise_kpca


def scores(
    clean: np.ndarray, sigma: float, quality: str, peers: dict[str, Denoiser]
) -> dict[str, float]:
    """Return the PSNR in dB of each denoiser on one photograph."""
    noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)
    ours = partial(denoise_kpca, noisy, data_range=255, channel_axis=-1, quality=quality)
    unit, level = noisy / 255, sigma / 255
    means = partial(
        denoise_nl_means, unit, patch_size=5, patch_distance=6, sigma=level, channel_axis=-1
    )
    wavelet = partial(denoise_wavelet, unit, channel_axis=-1, rescale_sigma=True)
    return {
        "noisy": psnr(noisy, clean),
        f"ours, {quality}": psnr(ours(sigma=sigma), clean),
        "ours, level estimated": psnr(ours(), clean),
        "non-local means": max(psnr(255 * means(h=f * level), clean) for f in (0.4, 0.6, 0.8)),
        "wavelet": max(
            psnr(255 * wavelet(sigma=f * level, convert2ycbcr=True), clean) for f in (0.5, 0.7, 1)
        ),
    } | {name: psnr(255 * peer(unit, level), clean) for name, peer in peers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sigma", type=float, default=25)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--quality", default="balanced")
    parser.add_argument("--bm3d", action="store_true")
    arguments = parser.parse_args()
    peers = installed_bm3d() if arguments.bm3d else {}
    rows = {
        name: scores(clean, arguments.sigma, arguments.quality, peers)
        for name, clean in photographs(arguments.size)
    }
    columns = list(next(iter(rows.values())))
    rows["mean"] = {c: float(np.mean([found[c] for found in rows.values()])) for c in columns}
    print(heading("photograph", *columns))
    for name, found in rows.items():
        print(row(name, *(f"{found[c]:.2f}" for c in columns)))


if __name__ == "__main__":
    main()
