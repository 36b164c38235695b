"""Add white noise to photographs used for tuning and to held-out ones, and denoise both.

Two sets: `development`, 16 grey crops of 192 x 192 pixels from the training photographs of BSDS500,
for choosing constants; `held-out`, ten whole grey test photographs of BSDS500, never used to choose
anything. Fixed seeds draw photographs and crops from sorted names. Each mean PSNR in dB is followed
by the difference to bm3d, if installed, with its standard error over images.

FOLDER is the unpacked BSDS500 (Arbelaez et al. 2011), from
https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html or its copy
https://github.com/BIDS/BSDS500; it must contain images/train and images/test.

    python tests/benchmarks/held_out.py --photographs FOLDER [--sets development] [--images 3]
        [--sigma 15 25 50] [--qualities fast balanced] [--no-bm3d]
"""

import argparse
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from photographs import Denoiser, Image, heading, in_grey, installed_bm3d, psnr, row, with_noise
from skimage.io import imread
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.denoiser import denoise_kpca

# BSDS500 subset, seed and number of photographs.
SETS = {"development": ("train", 16, 16), "held-out": ("test", 68, 10)}
CROP = 192


def images_of(name: str, folder: Path) -> Iterator[tuple[str, Image]]:
    part, seed, count = SETS[name]
    paths = sorted(folder.glob(f"**/images/{part}/*.jpg"))
    if not paths:
        sys.exit(f"{folder}: no images/{part}/*.jpg below it; give the folder of BSDS500")
    for i in np.random.default_rng(seed).permutation(len(paths))[:count]:
        whole = in_grey(imread(paths[i]))
        if name == "development":
            rng = np.random.default_rng(zlib.crc32(paths[i].stem.encode()))
            top, left = (rng.integers(0, side - CROP + 1) for side in whole.shape)
            whole = whole[top : top + CROP, left : left + CROP]
        yield paths[i].stem, whole


def ours(quality: str, noisy: Image, sigma: float) -> Image:
    options = {"noise": "gaussian", "quality": quality, "data_range": 255, "n_jobs": 1}
    return denoise_kpca(noisy, sigma=sigma, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=Path, required=True, help="folder of BSDS500")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--qualities", nargs="+", default=["fast", "balanced"])
    parser.add_argument("--images", type=int, help="no more than so many of each set")
    parser.add_argument("--no-bm3d", action="store_true")
    given = parser.parse_args()
    denoisers: dict[str, Denoiser] = {q: partial(ours, q) for q in given.qualities}
    denoisers |= {} if given.no_bm3d else installed_bm3d()
    print(heading("set", "sigma", "images", *denoisers))
    for name in given.sets:
        images = list(islice(images_of(name, given.photographs), given.images))
        for sigma in given.sigma:
            reached: dict[str, list[float]] = {method: [] for method in denoisers}
            for (image, clean), (method, denoiser) in (
                (image, way) for image in images for way in denoisers.items()
            ):
                with threadpool_limits(1):
                    noisy = with_noise(f"{name}/{image}", clean, sigma)
                    reached[method].append(psnr(denoiser(noisy, sigma), clean))
            cells = {method: f"{np.mean(found):.3f}" for method, found in reached.items()}
            if "bm3d" in denoisers and len(images) > 1:
                for method in given.qualities:
                    gain = np.subtract(reached[method], reached["bm3d"])
                    error = gain.std(ddof=1) / np.sqrt(len(images))
                    cells[method] += f" ({gain.mean():+.3f} ± {error:.3f})"
            print(row(name, f"{sigma:g}", len(images), *cells.values()), flush=True)


if __name__ == "__main__":
    main()
