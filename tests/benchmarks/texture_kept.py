"""Measure the texture kept in denoised camera photographs by octave of frequency, beside PSNR.

PAIRS is a folder for `camera_pairs.py`. The pairs are drawn from those without reported figures,
one per scene, so that these results may guide a choice. The texture kept is the regression
coefficient of a band of the denoised photograph's brightness on that of the clean one, in the
quarter of the tiles with most texture: 1 if all is kept and 0 if none, whatever noise remains.

Our denoiser runs with `--noise auto`, and with `--noise camera` at multiples of the estimated
level. Baselines know the truth: CBM3D (if `bm3d` is installed) gets the true noise level, non-local
means the best of ten settings.

With PHOTOGRAPHS, the training set of BSDS500, its textures and scikit-image's follow, through the
simulated camera of `camera_noise.py`.

    python tests/benchmarks/texture_kept.py PAIRS --photographs PHOTOGRAPHS
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from camera_noise import photograph, through_jpeg
from camera_pairs import baselines, measured_names, pair_names, psnr, read_pair
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps.denoise.denoiser import denoise_kpca

FACTORS = (0.6, 0.8, 1.0, 1.25)
WIDTHS = (0.0, 0.7, 1.4, 2.8, 5.6)  # sigmas in pixels; bands are differences of successive blurs
TILE, TEXTURED = 32, 0.25
PHOTONS = (100, 400)
MOST_TEXTURED = 4  # number of photographs used: those with the largest gradients


def choosing_names(names: list[str], count: int) -> list[str]:
    """Return names of image pairs for tuning: one per scene, none measured by `camera_pairs.py`."""
    measured = measured_names(names, 20)
    scenes: dict[str, str] = {}
    for name in random.Random(0).sample(names, len(names)):
        if name not in measured:
            scenes.setdefault(name.rsplit("_", 1)[0], name)
    return sorted(list(scenes.values())[:count])


def bands(image: np.ndarray) -> np.ndarray:
    """Return the octaves (4, h, w) of a photograph's brightness, finest first."""
    grey = np.clip(np.round(image), 0, 255).mean(axis=2)
    smooth = [gaussian_filter(grey, width) if width else grey for width in WIDTHS]
    return np.array(smooth[:-1]) - np.array(smooth[1:])


def textured_pixels(clean: np.ndarray) -> np.ndarray:
    """Mark the pixels (h, w) of the quarter of the tiles whose frequency bands are strongest."""
    size = np.abs(bands(clean)).sum(axis=0)
    rows, columns = (side // TILE for side in size.shape)
    tiles = size[: rows * TILE, : columns * TILE].reshape(rows, TILE, columns, TILE)
    means = tiles.mean(axis=(1, 3))
    chosen = np.kron(means >= np.quantile(means, 1 - TEXTURED), np.ones((TILE, TILE))) > 0
    return np.pad(chosen, [(0, side - done) for side, done in zip(size.shape, chosen.shape)])  # noqa: B905


def texture_kept(image: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """Return the fraction of the clean contrast kept in each octave, (4,)."""
    where = textured_pixels(clean)
    found, sought = bands(image)[:, where], bands(clean)[:, where]
    return np.sum(found * sought, axis=1) / np.sum(np.square(sought), axis=1)


def middle(image: np.ndarray, crop: int) -> np.ndarray:
    """Crop the central square of a photograph; 0 keeps all of it."""
    top, left = (max(0, side - crop) // 2 if crop else 0 for side in image.shape[:2])
    return image[top : image.shape[0] - top, left : image.shape[1] - left]


def textures(folder: Path, crop: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Simulate a camera on textures; yield name, noisy, clean."""
    scenes = {"chelsea": data.chelsea()}
    scenes |= {name: np.stack([getattr(data, name)()] * 3, axis=-1) for name in ("grass", "gravel")}
    found = {
        path.stem: middle(np.asarray(Image.open(path)), crop)
        for path in sorted(folder.rglob("*.jpg"))[::4]
    }
    slopes = {
        name: float(np.median(np.abs(np.diff(scene.mean(axis=2), axis=0))))
        for name, scene in found.items()
    }
    chosen = sorted(found, key=lambda name: slopes[name])[-MOST_TEXTURED:]
    for name, scene in (scenes | {name: found[name] for name in chosen}).items():
        pixels = middle(scene.astype(np.float64), crop)
        for photons in PHOTONS:
            noisy = through_jpeg(photograph(pixels, photons), 92, "4:4:4")
            yield f"{name}, {photons} photons", noisy, photograph(pixels, None)


def measure(noisy: np.ndarray, clean: np.ndarray, quality: str) -> dict[str, list[float]]:
    """Measure PSNR and texture kept of each method on one pair."""
    level = float(np.std(noisy - clean))
    found = {"noisy": noisy, "auto": denoise_kpca(noisy, channel_axis=-1, quality=quality)}
    for factor in FACTORS:
        found[f"x{factor:g}"] = denoise_kpca(
            noisy, noise="camera", channel_axis=-1, quality=quality, luma=factor, chroma=factor
        )
    found |= baselines(noisy, clean, level)
    return {
        method: [psnr(image, clean), *texture_kept(image, clean)] for method, image in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--crop", type=int, default=256, help="pixels a side; 0: all")
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--photographs", type=Path)
    arguments = parser.parse_args()
    print(f"{'pair':34}{'method':>8}{'PSNR':>8}  kept, finest octave first", flush=True)
    names = choosing_names(pair_names(arguments.folder), arguments.count)
    pairs = (
        (name, *(middle(image, arguments.crop) for image in read_pair(arguments.folder, name)))
        for name in names
    )
    _compare(pairs, arguments.quality)
    if arguments.photographs:
        _compare(textures(arguments.photographs, arguments.crop), arguments.quality)


def _compare(pairs: Iterator[tuple[str, np.ndarray, np.ndarray]], quality: str) -> None:
    rows = []
    for name, noisy, clean in pairs:
        rows.append(measure(noisy, clean.astype(np.float64), quality))
        for method, figures in rows[-1].items():
            _print(name[:33], method, figures)
    for method in rows[0]:
        _print("mean", method, np.mean([row[method] for row in rows], axis=0).tolist())


def _print(name: str, method: str, figures: list[float]) -> None:
    kept = "".join(f"{figure:8.3f}" for figure in figures[1:])
    print(f"{name:34}{method:>8}{figures[0]:8.2f}{kept}", flush=True)


if __name__ == "__main__":
    main()
