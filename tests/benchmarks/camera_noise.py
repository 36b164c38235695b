"""Simulate camera noise end to end: mosaic, photon and read noise, demosaicking, gamma, JPEG.

The truth is the same photograph through mosaic, demosaicking and gamma without noise or JPEG.
Baselines run at several levels; "tuned" is the result closest to the truth, unknown to users.
Non-local means also runs at the level of `estimate_sigma`, as users run it. Our modes estimate
their levels; our white-noise mode is also shown tuned. Quality 0 is PNG.

    python tests/benchmarks/camera_noise.py --photons 100 400
"""

import argparse
import io

import numpy as np
from photographs import heading, photographs, psnr, row
from PIL import Image
from scipy.ndimage import convolve
from skimage.restoration import denoise_nl_means, denoise_wavelet, estimate_sigma

from kpca_apps.denoise.denoiser import denoise_kpca

GAMMA = 2.2
AROUND = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4
BESIDE = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4


def photograph(scene: np.ndarray, photons: float | None) -> np.ndarray:
    """Simulate a camera's image of a scene (h, w, 3) in 0..255; None gives no noise."""
    light = (scene / 255) ** GAMMA
    colour = np.ones(scene.shape[:2], dtype=int)
    colour[0::2, 1::2], colour[1::2, 0::2] = 0, 2
    raw = np.take_along_axis(light, colour[..., None], 2)[..., 0]
    if photons is not None:
        rng = np.random.default_rng(1)
        raw = rng.poisson(raw * photons) / photons
        raw += 0.1 / np.sqrt(photons) * rng.standard_normal(raw.shape)
    channels = [
        convolve(raw * (colour == c), BESIDE if c == 1 else AROUND, mode="mirror") for c in range(3)
    ]
    return 255 * np.clip(np.stack(channels, axis=-1), 0, 1) ** (1 / GAMMA)


def through_jpeg(image: np.ndarray, quality: int, subsampling: str) -> np.ndarray:
    """Quantise an image (h, w, 3) to 8 bits; pass it through JPEG unless quality is 0."""
    pixels = np.round(image).astype(np.uint8)
    if quality == 0:
        return pixels
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=quality, subsampling=subsampling)
    return np.array(Image.open(stream))


def denoised(noisy: np.ndarray, truth: np.ndarray, quality: str) -> dict[str, np.ndarray]:
    deviation = float(np.std(noisy - truth))

    def best(candidates: list[np.ndarray]) -> np.ndarray:
        return max(candidates, key=lambda image: psnr(image, truth))

    def means(h: float, level: float = deviation / 255) -> np.ndarray:
        return 255 * denoise_nl_means(
            noisy / 255, patch_size=5, patch_distance=6, h=h * level, sigma=level, channel_axis=-1
        )

    def wavelet(factor: float) -> np.ndarray:
        level = factor * deviation / 255
        return 255 * denoise_wavelet(
            noisy / 255, sigma=level, channel_axis=-1, convert2ycbcr=True, rescale_sigma=True
        )

    def ours(sigma: float | None, noise: str) -> np.ndarray:
        return denoise_kpca(noisy, sigma=sigma, channel_axis=-1, noise=noise, quality=quality)

    return {
        "noisy": noisy,
        "camera": ours(None, "camera"),
        "white": ours(None, "gaussian"),
        "white, tuned": best([ours(f * deviation, "gaussian") for f in (1, 1.5, 2)]),
        "non-local means": means(0.8, estimate_sigma(noisy / 255, True, channel_axis=-1)),
        "non-local means, tuned": best([means(h) for h in (0.4, 0.6, 0.8, 1.1)]),
        "wavelet, tuned": best([wavelet(f) for f in (0.6, 1, 1.5)]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photons", type=float, nargs="+", default=[100, 400])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--quality", default="balanced")
    arguments = parser.parse_args()
    rows = []
    for name, scene in photographs(arguments.size):
        truth = photograph(scene, None)
        for photons in arguments.photons:
            noisy = through_jpeg(photograph(scene, photons), 90, "4:2:0")
            images = denoised(noisy, truth, arguments.quality)
            if not rows:
                print(heading("photograph", "photons", *images))
            rows.append([psnr(image, truth) for image in images.values()])
            print(row(name, f"{photons:g}", *(f"{db:.2f}" for db in rows[-1])))
    print(row("mean", "", *(f"{db:.2f}" for db in np.mean(rows, axis=0))))


if __name__ == "__main__":
    main()
