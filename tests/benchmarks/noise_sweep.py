"""Detectors simulated on clean pictures: the law of the noise found by `auto`, and what it costs.

FOLDER holds clean grey pictures (Set12: 01.png to 12.png), of which the middle 256 x 256 pixels are
seen by detectors drawn at random: 5 to 10,000 photons at the brightest, .1 to 20 grey values each,
readout of 0 to 20 and an offset of 0 to 500 grey values (as much less as 8 bits need), 8, 12 and 16
bits, and every other one followed by a blur of .7 pixels, by which neighbours share their noise.
Printed of each: variance found over the true one, at the dark and the bright end (5 and 95 % of the
pixels), and the image denoised by itself, and with the true law. Noise weaker than two of 255 parts
of the picture's range is left out: it is not to be seen.

    python tests/benchmarks/noise_sweep.py SET12 --cases 60
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.ndimage import gaussian_filter
from skimage.io import imread
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.estimate.law import Light
from kpca_apps.denoise.noise import poisson
from kpca_apps.denoise.options import Options

BLUR, WITHIN, DECIBELS = 0.7, 0.15, 0.2
FAINTEST = 2.0 / 255.0


@dataclass(frozen=True)
class Detector:
    """What a detector makes of a picture, and the law of its noise."""

    name: str
    bits: int
    blur: float
    noisy: np.ndarray
    clean: np.ndarray
    gain: float  # of the variance, as the constant
    constant: float

    @property
    def faint(self) -> bool:
        """Whether its noise is weaker than can be seen, at the bright end."""
        low, high = np.quantile(self.clean, [0.001, 0.999])
        return bool(self.gain * high + self.constant < (FAINTEST * (high - low)) ** 2)


def detector(seed: int, pictures: list[tuple[str, np.ndarray]]) -> Detector:
    """Return a detector drawn at random, and what it sees of one of the pictures."""
    rng = np.random.default_rng(seed)
    name, picture = pictures[rng.integers(len(pictures))]
    while True:
        bits = int(rng.choice([8, 12, 16]))
        gain, photons = np.exp(rng.uniform(np.log([0.1, 5.0]), np.log([20.0, 10_000.0])))
        read, offset = rng.uniform(0, 20), rng.uniform(0, 500)
        if bits == 8:
            read, offset = read / 4, offset / 12.5
        top = 2**bits - 1
        if 0.2 * top <= offset + gain * photons <= top and gain * photons >= 4 * read:
            break
    clean = offset + gain * photons * picture
    counted = gain * rng.poisson(photons * picture) + offset + rng.normal(0, read, picture.shape)
    blur, left = BLUR * int(rng.integers(2)), 1.0
    if blur:
        counted = clean + gaussian_filter(counted - clean, blur, mode="mirror")
        point = np.zeros((25, 25))
        point[12, 12] = 1.0
        left = float(np.square(gaussian_filter(point, blur)).sum())
    noisy = np.clip(np.round(counted), 0, top).astype(np.uint8 if bits == 8 else np.uint16)
    constant = left * (read**2 - gain * offset) + 1.0 / 12.0
    return Detector(name, bits, blur, noisy, clean, left * float(gain), float(constant))


def measure(seed: int, pictures: list[tuple[str, np.ndarray]], quality: str) -> list[object]:
    """Return the figures of one detector; nothing of one whose noise is faint."""
    seen = detector(seed, pictures)
    if seen.faint:
        return []
    ours, info = denoise_with_info(seen.noisy, quality=quality)
    unit = 255.0 / np.iinfo(seen.noisy.dtype).max
    light = Light(seen.gain * unit, seen.constant / seen.gain * unit, seen.blur)
    planes = np.float32(unit) * seen.noisy[np.newaxis].astype(np.float32)
    by_law = poisson.denoise(planes, (light,), Options(quality=quality))[0][0] / unit
    ends = np.quantile(seen.clean, [0.05, 0.95])
    true = seen.gain * ends + seen.constant
    ratios = np.zeros(2)
    if info.laws and info.established:
        ratios = info.laws[0].variance(ends) / true
        if info.noise == "gaussian":
            ratios = info.sigma**2 / true
    images = (seen.noisy, ours, by_law)
    return [
        seen.name, seen.bits, seen.blur, info.noise if info.established else "left",
        info.laws[0].blur if info.laws else -1.0, *ratios,
        *(peak_signal_noise_ratio(seen.clean, a, data_range=np.ptp(seen.clean)) for a in images),
    ]  # fmt: skip


def main() -> None:
    """Print a line a detector, and the shares within bounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--quality", default="fast", choices=["fast", "balanced", "high"])
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    pictures = []
    for path in sorted(arguments.folder.glob("*.png")):
        picture = np.asarray(imread(path, as_gray=True), np.float64)
        top, left = ((side - 256) // 2 for side in picture.shape)
        crop = picture[top : top + 256, left : left + 256]
        pictures.append((path.stem, crop / crop.max()))
    parallel = Parallel(arguments.jobs, return_as="generator")
    rows = []
    print("picture  bits blur  taken as  blur  dark  light   noisy  auto  told")
    one, quality = delayed(measure), arguments.quality
    for row in parallel(one(case, pictures, quality) for case in range(arguments.cases)):
        if row:
            rows.append(row)
            print("{:8} {:4} {:4} {:>9} {:5} {:5.2f} {:6.2f}  {:6.2f} {:6.2f} {:6.2f}".format(*row))
    ratios = np.array([row[5:7] for row in rows], float)
    near = np.abs(np.log(np.maximum(ratios, 1e-9))) <= np.log1p(WITHIN)
    auto, by_law = (np.array([row[k] for row in rows], float) for k in (8, 9))
    print(f"{len(rows)} detectors; variance within 15 %: dark {near[:, 0].mean():.2f}, "
          f"light {near[:, 1].mean():.2f}, both {near.all(axis=1).mean():.2f}; "
          f"within .2 dB of the true law: {np.mean(auto >= by_law - DECIBELS):.2f}; "
          f"mean {auto.mean():.2f} dB, told {by_law.mean():.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
