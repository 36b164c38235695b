"""An OME-Zarr or a TIFF of tiles larger than memory through ``kpca denoise run``, and a kill.

A small and a large image are made, page by page, of noise of 12 bits about a wave. The command is
killed while it writes the large one, and run again: the small one must not be done again, and the
memory of all its processes together, looked at five times a second, be below the limit::

    python -m tests.benchmarks.large_stack --gigabytes 10 --folder DISK
    python -m tests.benchmarks.large_stack --gigabytes .3 --kind tiff -- --quality draft

Without options of the command white noise of level 0 is given, so that what is read and written is
measured alone; denoising a page takes its own time and memory (`large_image`).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import tifffile
import zarr

from tests.benchmarks.processes import COMMAND, ROOT, children, watched

CHUNK, TILE = 1024, 256


def pages(n_pages: int, side: int) -> Iterator[np.ndarray]:
    """Yield pages of which no two are alike."""
    rng = np.random.default_rng(0)
    wave = 2000 + 1000 * np.sin(np.arange(side) / 40)
    noise = rng.normal(0, 60, (side, side)).astype("f4")
    for number in range(n_pages):
        yield (wave + np.roll(noise, 7 * number, axis=0)).astype("u2")


def make_zarr(folder: Path, n_pages: int, side: int) -> None:
    """An image of slices in chunks of one page, with two smaller copies."""
    group = zarr.open_group(str(folder), mode="w")
    datasets = []
    for level in range(3):
        small = side >> level
        shape, chunk = (n_pages, small, small), min(CHUNK, small)
        array = group.create_array(str(level), shape=shape, chunks=(1, chunk, chunk), dtype="u2")
        scale = [1.0, 0.5 * 2**level, 0.5 * 2**level]
        told = [{"type": "scale", "scale": scale}]
        datasets.append({"path": str(level), "coordinateTransformations": told})
        if level == 0:
            for number, page in enumerate(pages(n_pages, side)):
                array[number] = page
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}


def make_tiff(path: Path, n_pages: int, side: int) -> None:
    """A BigTIFF of pages in tiles, packed by Deflate."""
    with tifffile.TiffWriter(path, bigtiff=True) as writer:
        for page in pages(n_pages, side):
            writer.write(page, tile=(TILE, TILE), compression="zlib", contiguous=False)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    n_bytes = 0
    for one in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):  # renamed by whoever writes it
            n_bytes += one.stat().st_size if one.is_file() else 0
    return n_bytes


def killed(words: list[object], images: Path, share: int) -> None:
    """Run the command, and kill all its processes once a large unfinished result is there."""
    command = subprocess.Popen(
        [*COMMAND, *map(str, words)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while command.poll() is None:
        unfinished = list(images.glob(".kpca-denoise-*.partial")) if images.is_dir() else []
        if any(size_of(one) > share for one in unfinished):
            for process in (command.pid, *children(command.pid)):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.2)
    if command.returncode != -signal.SIGKILL:
        sys.exit(f"the command ended by itself, with {command.returncode}")


def main() -> int:
    """Print what it took; 1 if that was more memory than allowed, or a result was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of pixels")
    parser.add_argument("--side", type=int, default=4096, help="of a page")
    parser.add_argument("--kind", choices=("zarr", "tiff"), default="zarr")
    parser.add_argument("--most", type=float, default=2.0, help="gigabytes of memory")
    parser.add_argument("--folder", type=Path, help="where there is room for three such images")
    parser.add_argument("options", nargs="*", help="of the command, after --")
    arguments = parser.parse_args()
    make = {"zarr": make_zarr, "tiff": make_tiff}[arguments.kind]
    n_pages = max(2, round(arguments.gigabytes * 1e9 / (2 * arguments.side**2)))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        given, out = Path(folder, "in"), Path(folder, "out")
        given.mkdir()
        suffix = {"zarr": "zarr", "tiff": "tif"}[arguments.kind]
        small, large = (given / f"{name}.{suffix}" for name in ("a", "b"))
        make(small, 2, 512)
        make(large, n_pages, arguments.side)
        n_bytes = size_of(large)
        print(f"{n_pages} pages of {arguments.side}^2, {n_bytes / 1e9:.2f} GB", flush=True)
        options = arguments.options or ["--noise", "gaussian", "--sigma", "0"]
        words: list[object] = ["denoise", "run", given, "--out", out, "--jobs", 1, *options]
        killed(words, out / "images", n_bytes // 20)
        before = (out / f"images/a.{suffix}").stat().st_mtime_ns
        taken = watched(*words)
        kept = (out / f"images/a.{suffix}").stat().st_mtime_ns == before
        left = [path for path in out.rglob(".kpca*") if path.exists()]
        print(
            f"{taken.seconds:.0f} s ({taken.cpu_seconds:.0f} s of processor time), "
            f"{taken.peak_bytes / 1e9:.2f} GB at most; the first image "
            f"{'kept' if kept else 'DONE AGAIN'}, {len(left)} unfinished left, "
            f"{size_of(out / f'images/b.{suffix}') / 1e9:.2f} GB written",
            flush=True,
        )
        return int(not kept or bool(left) or taken.peak_bytes > arguments.most * 1e9)


if __name__ == "__main__":
    sys.exit(main())
