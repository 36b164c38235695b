"""Damage thousands of image files and count how the readers respond.

Each file is a small original with one kind of damage: flipped bytes, a truncated end, inserted or
removed bytes, or a replaced length, count or offset in a header. It is read, page by page, in
another process with little memory. Seeds are fixed, so that runs are reproducible::

    python -m tests.benchmarks.mutated_images            # 5,000 files of each kind
    python -m tests.benchmarks.mutated_images --files 500 --kinds png

A file must be rejected in one line or read, in 20 s and 1 GB, and a damaged file must not be read
as intact. PNG has checksums: no changed pixel may pass. The other formats have none, so changed
pixel bytes cannot be detected ("different"), but a truncated file must not be read with other
pixels ("cut"). If bytes were removed from the middle ("removed"), TIFF strips extend beyond the end
or fail to decompress; a JPEG block that lost codes, but not its last, cannot be detected.
Laboratory formats mostly store pixels uncompressed, with room at the end.
"""

import argparse
import io
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from kpca_apps.errors import KpcaError
from kpca_apps.images.files import read_image
from tests.benchmarks.processes import run_each
from tests.hostile.images import saved, tiff

SECONDS = 20
MOST_MEMORY = 1 << 30
ADDRESS_SPACE = 3 << 29
MOST_PAGES = 20  # limit on TIFF pages whose fields are listed
# Outcome of a file whose reader did not finish -> output column that counts such files.
LOST = {"late": "time", "killed": "killed"}
DAMAGE = ("flip", "cut", "insert", "remove", "field")
COLUMNS = (
    "files", "refused", "same", "different", "cut", "removed", "traceback", "killed", "memory",
    "time",
)  # fmt: skip
LABORATORY = ("fits", "mrc", "nifti", "dicom", "czi", "nd2", "avif", "heic", "zarr")
BEARABLE = {
    **{kind: {"refused", "same", "different", "removed"} for kind in LABORATORY},
    "png": {"refused", "same"},
    "tiff": {"refused", "same", "different"},
    "jpeg": {"refused", "same", "different", "removed"},
    "other": {"refused", "same", "different", "removed"},
}


def picture(*shape: int, dtype: str = "uint8") -> np.ndarray:
    """Return a gradient with noise: compressible, with no two equal rows."""
    rng = np.random.default_rng(len(shape))
    ramp = np.add.outer(np.arange(shape[0]), np.arange(shape[1])) % 200
    noisy = ramp.reshape(*ramp.shape, *[1] * (len(shape) - 2)) + rng.integers(0, 50, shape)
    if dtype.startswith("f"):
        return (noisy / 250).astype(dtype)
    return (noisy * (257 if dtype == "uint16" else 1)).astype(dtype)


def in_palette(pixels: np.ndarray, kind: str) -> bytes:
    """Convert to a palette image as Pillow writes it."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert("P").save(buffer, kind)
    return buffer.getvalue()


def originals(kind: str) -> list[bytes]:
    """Return the intact files to damage."""
    if kind in LABORATORY:
        return laboratory(kind)
    grey, colour, deep = picture(40, 50), picture(40, 50, 3), picture(40, 50, dtype="uint16")
    exif = Image.Exif()
    exif[274], exif[271], exif[282] = 6, "Maker", 300.0
    exif.get_ifd(34665)[33434] = 0.004
    if kind == "png":
        return [
            saved(grey, "PNG", dpi=(300, 300)),
            saved(colour, "PNG", exif=exif, icc_profile=bytes(range(200))),
            saved(deep, "PNG"),
            in_palette(colour, "PNG"),
            saved(grey, "PNG", transparency=7),
            saved(picture(700, 1000, 4), "PNG", compress_level=1),
        ]
    if kind == "jpeg":
        return [
            saved(grey, "JPEG"),
            saved(colour, "JPEG", exif=exif, icc_profile=bytes(range(200)), comment=b"a note"),
            saved(colour, "JPEG", progressive=True, quality=90),
            saved(picture(200, 240, 3), "JPEG", restart_marker_rows=1),
            saved(picture(200, 240, 3), "JPEG", subsampling=0, optimize=True),
            saved(picture(700, 1000, 3), "JPEG", quality=95, subsampling=0),
        ]
    if kind == "other":
        return [
            saved(colour, "WEBP", lossless=True),
            saved(colour, "WEBP", exif=exif),
            imagecodecs.jpeg2k_encode(colour, level=0, reversible=True),
            imagecodecs.jpeg2k_encode(deep, level=0, reversible=True, codecformat="j2k"),
            imagecodecs.jpegxl_encode(colour, lossless=True, usecontainer=True),
            imagecodecs.jpegxl_encode(deep, lossless=True),
            saved(grey, "BMP"),
            in_palette(colour, "BMP"),
            saved(colour, "PPM"),
            saved(deep, "PPM"),
        ]
    pages = io.BytesIO()
    with tifffile.TiffWriter(pages, bigtiff=True, byteorder=">") as writer:
        for number in range(3):
            writer.write(deep + number, compression="zlib", predictor=True, rowsperstrip=16)
    rows = {"rowsperstrip": 8, "photometric": "rgb"}
    return [
        tiff(grey),
        tiff(colour, compression="zlib", predictor=True, **rows),
        tiff(colour, compression="lzw", planarconfig="contig", **rows),
        tiff(deep, compression="packbits", tile=(16, 16)),
        tiff(picture(40, 50, dtype="float32"), compression="zstd", predictor=3),
        tiff(deep, compression="lzma", byteorder=">"),
        tiff(picture(64, 80, 3), compression="jpeg", tile=(32, 32), photometric="rgb"),
        saved(colour, "TIFF", compression="tiff_lzw", exif=exif),
        pages.getvalue(),
        tiff(picture(700, 1000, 3), compression="zlib", predictor=True, **rows),
    ]


def laboratory(kind: str) -> list[bytes]:
    """Return intact files of one kind: microscope, telescope, scanner, AVIF or HEIC."""
    grey, colour, deep = picture(40, 50), picture(40, 50, 3), picture(40, 50, dtype="uint16")
    stack = np.stack([deep, deep + 1, deep + 2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.{kind}")
        if kind == "fits":
            from astropy.io import fits

            science = fits.ImageHDU(stack.astype("f4"), name="SCI")
            table = fits.BinTableHDU.from_columns([fits.Column("a", "E", array=np.arange(5.0))])
            fits.HDUList([fits.PrimaryHDU(), science, table]).writeto(path, checksum=True)
            plain = Path(folder, "b.fits")
            fits.PrimaryHDU(deep).writeto(plain)
            return [path.read_bytes(), plain.read_bytes()]
        if kind == "mrc":
            import mrcfile

            with mrcfile.new(path) as file:
                file.set_data(stack)
                file.set_extended_header(np.arange(64, dtype="u1"))
            return [path.read_bytes()]
        if kind == "nifti":
            import nibabel

            made = []
            for suffix in (".nii", ".nii.gz"):
                path = Path(folder, f"a{suffix}")
                nibabel.save(nibabel.Nifti1Image(stack.astype("i2").T, np.eye(4)), path)
                made.append(path.read_bytes())
            return made
        if kind == "dicom":
            from pydicom import dcmread
            from pydicom.uid import RLELossless

            from tests.images.laboratory.test_to_tiff import dicom

            plain = dicom(stack, Path(folder))
            whole, packed = plain.read_bytes(), dcmread(plain)
            packed.compress(RLELossless)
            packed.save_as(plain)
            return [whole, plain.read_bytes()]
        if kind == "czi":
            from pylibCZIrw import czi

            made = []
            for packing in ("uncompressed:", "zstd1:ExplicitLevel=1;PreProcess=HiLoByteUnpack"):
                path.unlink(missing_ok=True)
                with czi.create_czi(str(path), compression_options=packing) as writer:
                    for number, page in enumerate(stack):
                        writer.write(page[..., np.newaxis], plane={"C": 0, "Z": number, "T": 0})
                    writer.write_metadata("a stack", channel_names={0: "DAPI"}, scale_x=1e-7)
                made.append(path.read_bytes())
            return made
        if kind == "nd2":
            from tests.images.laboratory.nd2_files import nd2_file

            frames = stack[:, np.newaxis, np.newaxis]
            return [nd2_file(frames, names=["DAPI"], size=0.2, step=1.0, ms=5.0)]
        if kind == "heic":
            import pillow_heif

            pillow_heif.from_bytes("RGB", (50, 40), colour.tobytes()).save(path, quality=-1)
            return [path.read_bytes()]
        if kind == "zarr":
            from tests.images.laboratory.test_ome_zarr import made as made_folder

            folders = [
                made_folder(Path(folder, str(version)), np.stack([stack, stack]), version=version)
                for version in (2, 3)
            ]
            return [packed_folder(folder) for folder in folders]
        ten = imagecodecs.avif_encode(deep >> 6, level=100, bitspersample=10)
        return [saved(colour, "AVIF"), imagecodecs.avif_encode(grey, level=100), ten]


def packed_folder(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def write_original(path: Path, kind: str, data: bytes) -> None:
    """Write a file; unpack the files of a Zarr folder."""
    if kind != "zarr":
        path.write_bytes(data)
        return
    shutil.rmtree(path, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(path)


def damaged_folder(whole: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Damage one file of a zipped folder; half of the calls choose among metadata files only."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(buffer, "w") as archive:
        names = source.namelist()
        telling = [name for name in names if name.rpartition("/")[2].startswith((".z", "zarr"))]
        which = str(rng.choice(telling if rng.integers(2) else names))
        for name in names:
            content = source.read(name)
            if name == which and content:
                what, content = damaged("other", content, rng)
            archive.writestr(name, content)
    return what, buffer.getvalue()


def fields(kind: str, whole: bytes) -> list[tuple[int, int]]:
    """Return positions and widths of the lengths, counts and offsets in headers."""
    if kind == "png":
        found, place = [(16, 4), (20, 4), (24, 1), (25, 1), (28, 1)], 8
        while place < len(whole):
            found.append((place, 4))
            place += 12 + int.from_bytes(whole[place : place + 4], "big")
        return found
    if kind == "jpeg":
        found, place = [], 2
        while whole[place + 1] != 0xDA:
            found.append((place + 2, 2))
            if whole[place + 1] in (0xC0, 0xC2):
                found += [(place + 5, 2), (place + 7, 2), (place + 9, 1)]
            place += 2 + int.from_bytes(whole[place + 2 : place + 4], "big")
        return [*found, (place + 2, 2)]
    if kind == "other" or kind in LABORATORY:
        most = 64 if kind == "other" else 1024
        return [(place, 4) for place in range(min(most, len(whole)))]
    with tifffile.TiffFile(io.BytesIO(whole)) as file:
        wide = 8 if file.is_bigtiff else 4
        found = [(8 if file.is_bigtiff else 4, wide)]
        # A damaged file may list millions of pages or loop.
        for page in islice(file.pages, MOST_PAGES):
            for tag in page.tags:
                found += [
                    (tag.offset + 2, 2),
                    (tag.offset + 4, wide),
                    (tag.offset + 4 + wide, wide),
                ]
        return found


def damaged(kind: str, whole: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Damage a file; return the kind of damage and the damaged bytes."""
    what, data = str(rng.choice(DAMAGE)), bytearray(whole)
    place = int(rng.integers(len(data)))
    if what == "flip":
        for at in rng.integers(len(data), size=int(rng.integers(1, 9))):
            data[at] ^= int(rng.integers(1, 256))
    elif what == "cut":
        del data[place:]
    elif what == "insert":
        data[place:place] = rng.bytes(int(rng.integers(1, 65)))
    elif what == "remove":
        del data[place : place + int(rng.integers(1, 65))]
    else:
        at, width = fields(kind, whole)[int(rng.integers(len(fields(kind, whole))))]
        value = [0, 1, 2 ** int(rng.integers(8 * width)), 256**width - 1][int(rng.integers(4))]
        order = "big" if kind != "tiff" or whole.startswith(b"MM") else "little"
        data[at : at + width] = value.to_bytes(width, order)
    return what, bytes(data)


def mutations(kind: str, n_files: int) -> Iterator[tuple[int, str, bytes]]:
    """Yield the original's number, the kind of damage, and the damaged file."""
    files = originals(kind)
    for number in range(n_files):
        rng = np.random.default_rng([number, len(kind)])
        which = int(rng.integers(len(files)))
        if kind == "zarr":
            what, data = damaged_folder(files[which], rng)
        else:
            what, data = damaged(kind, files[which], rng)
        yield which, what, data


def read_all(path: str) -> list[np.ndarray]:
    image = read_image(path, label="it")
    return [image.page(number) for number in range(len(image.pages))]


def prepare_reader(kind: str, folder: str) -> Callable[[tuple[int, str]], str]:
    """Read the intact files; return a function that reads a damaged one and reports the result."""
    wholes = []
    for data in originals(kind):
        path = Path(folder, "whole")
        write_original(path, kind, data)
        wholes.append(read_all(str(path)))

    def read_damaged(item: tuple[int, str]) -> str:
        which, path = item
        try:
            pages = read_all(path)
        except KpcaError as error:
            return "refused" if str(error).isprintable() else f"traceback {error}"
        except MemoryError:
            return "memory"
        except Exception as error:
            return f"traceback {error!r}"
        whole = wholes[which]
        same = len(pages) == len(whole) and all(map(np.array_equal, pages, whole))
        return "same" if same else "different"

    return read_damaged


def measure(kind: str, n_files: int, keep: Path | None) -> tuple[Counter[str], int, float]:
    """Return counts by outcome, the highest peak memory, and the longest time."""
    counts, biggest, longest = Counter({"files": n_files}), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder, "damaged"), list[tuple[int, str, bytes]]()

        def written() -> Iterator[tuple[int, str]]:
            for which, what, data in mutations(kind, n_files):
                made[:] = [(which, what, data)]
                write_original(path, kind, data)
                yield which, str(path)

        ready = partial(prepare_reader, kind, folder)
        for number, result in enumerate(run_each(ready, written(), ADDRESS_SPACE, SECONDS)):
            ((which, what, data),) = made
            outcome, _, detail = result.outcome.partition(" ")
            outcome = LOST.get(outcome, outcome)
            longest, biggest = max(longest, result.seconds), max(biggest, result.peak_bytes)
            if outcome == "different" and what in ("cut", "remove"):
                outcome = {"cut": "cut", "remove": "removed"}[what]
            counts[outcome] += 1
            if outcome not in BEARABLE[kind]:
                print(f"{kind} {number}: original {which}, {what}: {outcome} {detail}")
                if keep is not None:
                    (keep / f"{number}.{kind}").write_bytes(data)
    counts["memory"] += biggest > MOST_MEMORY
    return counts, biggest, longest


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=5000, help="of each kind")
    kinds = ["png", "tiff", "jpeg", "other", *LABORATORY]
    parser.add_argument("--kinds", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--keep", type=Path, help="a folder for the files that went wrong")
    arguments = parser.parse_args()
    rows, n_bad = [], 0
    for kind in arguments.kinds:
        counts, biggest, longest = measure(kind, arguments.files, arguments.keep)
        rows.append([kind, *(str(counts[name]) for name in COLUMNS)])
        rows[-1] += [f"{biggest / 2**20:.0f} MB", f"{longest:.2f} s"]
        n_bad += sum(counts[name] for name in COLUMNS[1:] if name not in BEARABLE[kind])
    for row in [["kind", *COLUMNS, "peak", "longest"], *rows]:
        print("  ".join(f"{cell:>9}" for cell in row))
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
