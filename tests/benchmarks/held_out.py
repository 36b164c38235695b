"""White noise on images the denoiser's constants were chosen on, and on others, side by side.

Four sets: `Set12`, the twelve grey images of the literature; `development`, 16 grey crops of 192 x
192 pixels from the training photographs of BSDS500, for choosing constants; `held-out`, ten whole
grey test photographs of BSDS500, on which nothing is ever chosen; `colour`, the photographs bundled
with scikit-image, cut to 256 x 256. Which photographs and crops they are is drawn with fixed seeds,
from sorted names. The noise is not clipped and drawn for each image; the results are clipped. Below
each mean PSNR in dB is the difference to bm3d with its standard error over images, where bm3d (free
for non-commercial use, no dependency of ours) is installed.

FOLDER is the unpacked BSDS500 (Arbelaez et al. 2011), of
https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html or its copy
https://github.com/BIDS/BSDS500; anything with images/train and images/test below it will do.

    python tests/benchmarks/held_out.py --photographs FOLDER [--set12 FOLDER] [--images 3]
        [--sets development held-out] [--sigma 15 25 50] [--qualities fast balanced] [--no-bm3d]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from photographs import photographs, psnr, row
from set12 import NAMES, Denoiser
from skimage.io import imread
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.denoiser import denoise_kpca

Image = NDArray[np.float64]

SETS = ("Set12", "development", "held-out", "colour")
DEVELOPMENT_SEED, HELD_OUT_SEED = 16, 68
GREY = (0.299, 0.587, 0.114)  # luma of JPEG, rounded: what the literature's grey copies are


def find_photographs(folder: Path, part: str) -> list[Path]:
    """The photographs of a part of BSDS500, by name."""
    found = sorted(folder.glob(f"**/images/{part}/*.jpg"))
    if not found:
        sys.exit(f"{folder}: no images/{part}/*.jpg below it; give the folder of BSDS500")
    return found


def read_grey(path: Path) -> Image:
    return np.round(imread(path).astype(float) @ GREY)


def images_of(name: str, options: argparse.Namespace) -> Iterator[tuple[str, Image]]:
    """Yield the names and clean images of a set."""
    if name == "Set12":
        for image in NAMES:
            yield image, imread(options.set12 / f"{image}.png").astype(float)
    elif name == "development":
        paths = find_photographs(options.photographs, "train")
        for i in np.random.default_rng(DEVELOPMENT_SEED).permutation(len(paths))[:16]:
            whole, rng = (
                read_grey(paths[i]),
                np.random.default_rng(zlib.crc32(paths[i].stem.encode())),
            )
            top, left = (rng.integers(0, side - 192 + 1) for side in whole.shape)
            yield paths[i].stem, whole[top : top + 192, left : left + 192]
    elif name == "held-out":
        paths = find_photographs(options.photographs, "test")
        for i in np.random.default_rng(HELD_OUT_SEED).permutation(len(paths))[:10]:
            yield paths[i].stem, read_grey(paths[i])
    else:
        yield from photographs(256)


def ours(quality: str, noisy: Image, sigma: float) -> Image:
    axis = -1 if noisy.ndim == 3 else None
    return denoise_kpca(
        noisy, sigma=sigma, noise="gaussian", quality=quality, data_range=255, channel_axis=axis,
        n_jobs=1,
    )  # fmt: skip


def bm3d(noisy: Image, sigma: float) -> Image:
    from bm3d import bm3d, bm3d_rgb

    return np.asarray((bm3d_rgb if noisy.ndim == 3 else bm3d)(noisy, sigma))


def main() -> None:
    """Print a Markdown row for each set and noise level."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=Path, help="folder of BSDS500")
    parser.add_argument("--set12", type=Path, help="folder with 01.png to 12.png")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="all there are folders for")
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--qualities", nargs="+", default=["fast", "balanced"])
    parser.add_argument("--images", type=int, help="no more than so many of each set")
    parser.add_argument("--no-bm3d", action="store_true")
    options = parser.parse_args()
    folders = {"Set12": options.set12, "colour": Path()}
    have = [name for name in SETS if folders.get(name, options.photographs) is not None]
    for name in set(options.sets or ()) - set(have):
        sys.exit(f"{name}: give --{'set12' if name == 'Set12' else 'photographs'} FOLDER")
    denoisers: dict[str, Denoiser] = {
        quality: partial(ours, quality) for quality in options.qualities
    }
    if not options.no_bm3d and importlib.util.find_spec("bm3d") is None:
        print("bm3d is not installed, and left out", file=sys.stderr)
    elif not options.no_bm3d:
        denoisers["bm3d"] = bm3d
    print(row("set", "sigma", "images", *denoisers))
    print("|---" * (len(denoisers) + 3) + "|")
    for name in options.sets or have:
        images = list(images_of(name, options))[: options.images]
        for sigma in options.sigma:
            reached = np.array([score(name, *image, sigma, denoisers) for image in images])
            cells = []
            for column in reached.T:
                cells.append(f"{column.mean():.3f}")
                if "bm3d" in denoisers and column is not reached.T[-1] and len(images) > 1:
                    gain = column - reached[:, -1]
                    error = gain.std(ddof=1) / np.sqrt(len(images))
                    cells[-1] += f" ({gain.mean():+.3f} ± {error:.3f})"
            if "bm3d" in denoisers:
                cells[-1] = f"{reached[:, -1].mean():.3f}"
            print(row(name, f"{sigma:g}", len(images), *cells), flush=True)


def score(
    of: str, name: str, clean: Image, sigma: float, denoisers: dict[str, Denoiser]
) -> list[float]:
    """PSNR of each denoiser on one image, whose noise is the same for everyone."""
    rng = np.random.default_rng(zlib.crc32(f"{of}/{name}|{sigma:g}".encode()))
    noisy = clean + sigma * rng.standard_normal(clean.shape)
    with threadpool_limits(1):
        return [psnr(denoiser(noisy, sigma), clean) for denoiser in denoisers.values()]


if __name__ == "__main__":
    main()
