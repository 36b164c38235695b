"""Denoise volumes and films with white noise: as stacks, page by page, and with 3-D baselines.

Three stacks: the 3-D Shepp-Logan phantom (Kak, Slaney 1988), 64 x 96 x 96 unless --pages sets
another size; microscopy nuclei from the package stardist (skipped if not installed; --volume names
another TIFF); and a film, scikit-image's camera() shifted by three pixels across and two down from
page to page. Noise is unclipped; PSNR is of results clipped to 0..255. Seconds are of one core.
Baselines: bm4d (skipped if not installed) and scikit-image's non-local means in 3-D, both given the
true level.

    python tests/benchmarks/stacks.py [--pages 24] [--volume FILE] [--sigma 10 25 50]
"""

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray
from photographs import psnr
from skimage import data
from skimage.restoration import denoise_nl_means
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.denoiser import denoise_kpca

Pages = NDArray[np.float64]
# One ellipsoid per line: density, half axes and centre (in x, y, z), and rotation about the z axis
# in degrees.
ELLIPSOIDS = (
    (1.0, 0.69, 0.92, 0.81, 0.0, 0.0, 0.0, 0),
    (-0.8, 0.6624, 0.874, 0.78, 0.0, -0.0184, 0.0, 0),
    (-0.2, 0.11, 0.31, 0.22, 0.22, 0.0, 0.0, -18),
    (-0.2, 0.16, 0.41, 0.28, -0.22, 0.0, 0.0, 18),
    (0.1, 0.21, 0.25, 0.41, 0.0, 0.35, -0.15, 0),
    (0.1, 0.046, 0.046, 0.05, 0.0, 0.1, 0.25, 0),
    (0.1, 0.046, 0.046, 0.05, 0.0, -0.1, 0.25, 0),
    (0.1, 0.046, 0.023, 0.05, -0.08, -0.605, 0.0, 0),
    (0.1, 0.023, 0.023, 0.02, 0.0, -0.606, 0.0, 0),
    (0.1, 0.023, 0.046, 0.02, 0.06, -0.605, 0.0, 0),
)


def phantom(pages: int, side: int = 96) -> Pages:
    """Return the 3-D Shepp-Logan phantom, in 0..255."""
    axes = (np.linspace(-1, 1, pages), np.linspace(-1, 1, side), np.linspace(-1, 1, side))
    z, y, x = np.meshgrid(*axes, indexing="ij")
    density = np.zeros(z.shape)
    for value, a, b, c, x0, y0, z0, degrees in ELLIPSOIDS:
        turn = np.radians(degrees)
        along = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn)
        across = (y - y0) * np.cos(turn) - (x - x0) * np.sin(turn)
        density[(along / a) ** 2 + (across / b) ** 2 + ((z - z0) / c) ** 2 <= 1] += value
    return 255 * np.clip(density, 0, 1)


def stacks(pages: int, volume: Path | None) -> Iterator[tuple[str, Pages]]:
    """Yield the name and the clean pages, 0..255, of each stack."""
    yield "phantom", phantom(pages)
    spec = find_spec("stardist")
    if volume is None and spec and spec.submodule_search_locations:
        volume = Path(spec.submodule_search_locations[0]) / "data/images/img3d.tif"
    if volume is None:
        print("nuclei are skipped: install stardist or give --volume")
    else:
        found = tifffile.imread(volume).astype(float)
        yield "micrograph", 255 * (found - found.min()) / np.ptp(found)
    whole = data.camera().astype(float)
    shifted = [whole[60 + 2 * i : 188 + 2 * i, 180 - 3 * i : 308 - 3 * i] for i in range(16)]
    yield "film", np.stack(shifted)


def denoisers(sigma: float) -> dict[str, Callable[[Pages], Pages]]:
    def ours(noisy: Pages) -> Pages:
        return denoise_kpca(noisy, sigma=sigma, data_range=255, stack_axis=0, n_jobs=1)

    def one_by_one(quality: str) -> Callable[[Pages], Pages]:
        return lambda noisy: np.stack(
            [denoise_kpca(p, sigma=sigma, data_range=255, quality=quality, n_jobs=1) for p in noisy]
        )

    def means(noisy: Pages) -> Pages:
        level = sigma / 255
        return 255 * denoise_nl_means(
            noisy / 255, patch_size=3, patch_distance=4, h=0.6 * level, sigma=level
        )

    found: dict[str, Callable[[Pages], Pages]] = {
        "stack": ours,
        "pages fast": one_by_one("fast"),
        "pages balanced": one_by_one("balanced"),
        "nlm 3-D": means,
    }
    if find_spec("bm4d"):
        from bm4d import bm4d

        found["bm4d"] = lambda noisy: bm4d(noisy, sigma)
    else:
        print("bm4d is skipped: pip install bm4d")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--volume", type=Path)
    parser.add_argument("--sigma", type=float, nargs="+", default=[10.0, 25.0, 50.0])
    arguments = parser.parse_args()
    denoise_kpca(np.zeros((2, 24, 24)), sigma=9, data_range=255, stack_axis=0)  # compile
    with threadpool_limits(1):
        for name, clean in stacks(arguments.pages, arguments.volume):
            print(f"{name} {clean.shape}")
            for sigma in arguments.sigma:
                noisy = clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)
                cells = [f"noisy {psnr(noisy, clean):.2f}"]
                for way, denoise in denoisers(sigma).items():
                    began = time.process_time()
                    figure = psnr(denoise(noisy), clean)
                    cells.append(f"{way} {figure:.2f} ({time.process_time() - began:.0f} s)")
                print(f"  sigma {sigma:g}: " + ", ".join(cells), flush=True)


if __name__ == "__main__":
    main()
