"""Measure ``kpca denoise run`` on a camera-sized colour photograph; compare bytes of the results.

The command denoises a mosaic of photographs with white noise of sigma 15 in 8 bits, as a user would
run it, with two processes and, with ``--twice``, with one: the files must be identical::

    python -m tests.benchmarks.large_image --megapixels 2 --twice
    python -m tests.benchmarks.large_image --megapixels 24 --photographs FOLDER --quality draft

Memory is the peak resident memory summed over the command's processes, sampled five times a second
(RSS; shared libraries count for each process). Without a folder of photographs the mosaic uses
those of scikit-image. On a busy machine compare CPU times: on an idle one, two processes take
little more than half of the wall time. PSNR is against the mosaic without noise.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data
from skimage.io import imread
from skimage.metrics import peak_signal_noise_ratio

from tests.benchmarks.processes import run_kpca

SIGMA = 15.0


def photographs(folder: Path | None) -> Iterator[np.ndarray]:
    """Yield colour photographs in landscape orientation, endlessly."""
    if folder is None:
        names = (data.astronaut, data.coffee, data.chelsea, data.rocket)
        yield from cycle([name() for name in names])
        return
    for path in cycle(sorted([*folder.rglob("*.jpg"), *folder.rglob("*.png")])):
        pixels = np.asarray(Image.open(path).convert("RGB"))
        yield pixels if pixels.shape[1] >= pixels.shape[0] else np.rot90(pixels)


def mosaic(megapixels: float, folder: Path | None) -> np.ndarray:
    """Tile photographs until a 3:2 image is full."""
    height, width = (round(side * (megapixels / 24) ** 0.5) for side in (4000, 6000))
    source, rows, done = photographs(folder), [], 0
    while done < height:
        row: list[np.ndarray] = []
        while sum(piece.shape[1] for piece in row) < width:
            row.append(next(source))
        lowest = min(len(piece) for piece in row)
        rows.append(np.concatenate([piece[:lowest] for piece in row], axis=1)[:, :width])
        done += lowest
    return np.ascontiguousarray(np.concatenate(rows)[:height])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megapixels", type=float, default=2.0)
    parser.add_argument("--photographs", type=Path, help="folder of photographs for the mosaic")
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--twice", action="store_true", help="by one processor too")
    parser.add_argument("options", nargs="*", help="of the command, after --")
    arguments = parser.parse_args()
    name = "mosaic.png"
    clean = mosaic(arguments.megapixels, arguments.photographs)
    noise = np.random.default_rng(0).standard_normal(clean.shape, np.float32)
    noise *= np.float32(SIGMA)
    noise += clean
    noisy = np.clip(np.rint(noise, out=noise), 0, 255).astype(np.uint8)
    del noise
    hashes = set()
    with tempfile.TemporaryDirectory() as folder:
        Image.fromarray(noisy).save(Path(folder, name), compress_level=1)
        for jobs in (2, 1) if arguments.twice else (2,):
            out = Path(folder, f"by-{jobs}")
            words = ("denoise", "run", Path(folder, name), "--out", out)
            taken = run_kpca(
                *words, "--quality", arguments.quality, "--jobs", jobs, *arguments.options
            )
            hashes.add(hashlib.sha256((out / "images" / name).read_bytes()).hexdigest())
            found = imread(out / "images" / name)
            height, width = found.shape[:2]
            db = peak_signal_noise_ratio(clean, found, data_range=255)
            print(
                f"{width} x {height}, {jobs} processors: {taken.seconds:.0f} s "
                f"({taken.cpu_seconds:.0f} s of processor time), "
                f"{taken.peak_bytes / 1e9:.2f} GB at most, {db:.2f} dB",
                flush=True,
            )
    if arguments.twice:
        print("the same bytes" if len(hashes) == 1 else "DIFFERENT bytes")


if __name__ == "__main__":
    main()
