"""Denoise photographs with real camera noise; the truth is the mean of many shots.

FOLDER holds NAME_real.JPG and NAME_mean.JPG, like the 100 pairs of Xu, Li, Liang, Zhang and Zhang
2018, "Real-world noisy image denoising: a new benchmark" (folder CroppedImages of the repository
csjunxu/PolyU-Real-World-Noisy-Images-Dataset). A fixed seed draws the pairs to measure; no constant
of the package was fitted to them or to other pairs of their scenes: see `camera_constants.py`. Our
denoiser runs with `--noise auto`, and with multiples of the estimated level. Baselines know the
truth: CBM3D (if `bm3d` is installed) gets the true noise level, non-local means the best of ten
settings.

    python tests/benchmarks/camera_pairs.py FOLDER --quality fast
"""

import argparse
import random
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from PIL import Image
from skimage.restoration import denoise_nl_means

from kpca_apps.denoise.denoiser import denoise_kpca, denoise_with_info

FACTORS = (0.6, 0.8, 1.25, 1.6, 2.0)


def pair_names(folder: Path) -> list[str]:
    return sorted({path.stem.rsplit("_", 1)[0] for path in folder.glob("*_*.JPG")})


def measured_names(names: list[str], count: int) -> list[str]:
    """Return the names of the pairs used for reported figures."""
    return sorted(random.Random(0).sample(names, min(count, len(names))))


def read_pair(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read the noisy photograph and the mean image, each (h, w, 3) in 0..255."""
    found = {path.stem.rsplit("_", 1)[1].lower(): path for path in folder.glob(f"{name}_*.JPG")}
    noisy, clean = (np.asarray(Image.open(found[kind])) for kind in ("real", "mean"))
    return noisy, clean


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB of an image rounded to 8 bits."""
    rounded = np.clip(np.round(image), 0, 255)
    return float(10 * np.log10(255**2 / np.mean(np.square(rounded - clean))))


def tuned_nl_means(noisy: np.ndarray, clean: np.ndarray, level: float) -> np.ndarray:
    """Return the best result of ten non-local means settings for a photograph."""
    found = (
        255 * denoise_nl_means(
            noisy / 255, patch_size=5, patch_distance=6, h=h * level / 255, sigma=s * level / 255,
            channel_axis=-1,
        )
        for h in (0.6, 0.8, 1.0, 1.3, 1.7) for s in (0.0, 1.0)
    )  # fmt: skip
    return max(found, key=lambda image: psnr(image, clean))


def baselines(noisy: np.ndarray, clean: np.ndarray, level: float) -> dict[str, np.ndarray]:
    """Denoise a photograph with baselines that know the true noise level."""
    found = {"nlm": tuned_nl_means(noisy, clean, level)}
    if find_spec("bm3d"):
        from bm3d import bm3d_rgb

        found["cbm3d"] = 255 * bm3d_rgb(noisy / 255, level / 255)
    return found


def measure(folder: Path, name: str, crop: int, quality: str) -> dict[str, float | str]:
    noisy, clean = read_pair(folder, name)
    top, left = ((side - crop) // 2 if crop else 0 for side in noisy.shape[:2])
    window = np.s_[top : noisy.shape[0] - top, left : noisy.shape[1] - left]
    noisy, clean = noisy[window], clean[window].astype(np.float64)
    level = float(np.std(noisy - clean))
    row: dict[str, float | str] = {"noisy": psnr(noisy, clean)}
    ours, info = denoise_with_info(noisy, noise="auto", channel_axis=-1, quality=quality)
    row |= {"auto": psnr(ours, clean), "model": info.noise if info.established else "none"}
    row |= {"sigma": info.sigma, "true": level}
    for factor in FACTORS:
        other = denoise_kpca(
            noisy, noise="auto", channel_axis=-1, quality=quality, luma=factor, chroma=factor
        )
        row[f"x{factor:g}"] = psnr(other, clean)
    others = baselines(noisy, clean, level)
    return row | {method: psnr(image, clean) for method, image in others.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument(
        "--crop", type=int, default=0, help="pixels a side about the centre; 0: all"
    )
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    names = measured_names(pair_names(arguments.folder), arguments.count)
    task, how = delayed(measure), (arguments.crop, arguments.quality)
    rows = Parallel(arguments.jobs)(task(arguments.folder, name, *how) for name in names)
    columns = [key for key in rows[0] if key != "model"]
    print(f"{'pair':34}{'model':>9}" + "".join(f"{key:>8}" for key in columns))
    for name, row in zip(names, rows, strict=True):
        print(f"{name[:33]:34}{row['model']:>9}" + "".join(f"{row[key]:8.2f}" for key in columns))
    means = [np.mean([float(row[key]) for row in rows]) for key in columns]
    print(f"{'mean':43}" + "".join(f"{mean:8.2f}" for mean in means))
    for baseline in ("nlm", "cbm3d"):
        if baseline in rows[0]:
            gains = [float(row["auto"]) - float(row[baseline]) for row in rows]
            won = sum(gain > 0 for gain in gains)
            print(
                f"over {baseline}: {np.mean(gains):+.2f} dB in the mean, above on {won} of "
                f"{len(rows)}"
            )


if __name__ == "__main__":
    main()
