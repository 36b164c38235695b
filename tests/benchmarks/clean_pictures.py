"""Measure what `--noise auto` changes in clean and nearly clean pictures.

The ten photographs, scans and drawings come with scikit-image; none was used to choose a constant
that separates noise from texture. Prints the mean change of each picture in grey levels (0
to 255), the gain in dB of denoising faint white noise at the estimated level, and the least gain.

    python tests/benchmarks/clean_pictures.py [--quality fast] [--size 256]
"""

import argparse
import warnings

import numpy as np
from photographs import psnr
from skimage import data

from kpca_apps.denoise.denoiser import denoise_with_info

PICTURES = (
    "astronaut", "chelsea", "coffee", "rocket", "colorwheel", "camera", "coins", "moon", "page",
    "text",
)  # fmt: skip
SIGMAS = (2.0, 3.0, 4.0, 5.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--size", type=int, default=256, help="of the crops noise is added to")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    changes, gains = [], []
    print(f"{'picture':12}{'change':>8}" + "".join(f"   gain at {sigma:g}" for sigma in SIGMAS))
    for name in PICTURES:
        clean = getattr(data, name)()[..., :3] if name == "colorwheel" else getattr(data, name)()
        axis = -1 if clean.ndim == 3 else None
        found, _ = denoise_with_info(clean, channel_axis=axis, quality=arguments.quality)
        changes.append(float(np.mean(np.abs(found - clean))))
        crop = clean[: arguments.size, : arguments.size].astype(np.float64)
        row = []
        for sigma in SIGMAS:
            noisy = crop + sigma * np.random.default_rng(0).standard_normal(crop.shape)
            found, _ = denoise_with_info(
                noisy, channel_axis=axis, quality=arguments.quality, data_range=255
            )
            row.append(psnr(found, crop) - psnr(noisy, crop))
        gains.append(row)
        print(f"{name:12}{changes[-1]:8.3f}" + "".join(f"{gain:12.2f}" for gain in row), flush=True)
    print(f"{'mean':12}{np.mean(changes):8.3f}" + "".join(f"{g:12.2f}" for g in np.mean(gains, 0)))
    print(f"{'least':20}" + "".join(f"{gain:12.2f}" for gain in np.min(gains, axis=0)))


if __name__ == "__main__":
    main()
