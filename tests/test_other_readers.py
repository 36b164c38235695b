"""Other readers get the same values from our files, or other_tools.md lists the difference."""

import datetime
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import fastexcel
import fitsio
import imagecodecs
import mrcfile
import nibabel
import numpy as np
import OpenImageIO as oiio
import openpyxl
import pandas as pd
import pillow_jxl  # noqa: F401  (Pillow reads JPEG XL by it)
import polars as pl
import pyarrow.csv
import pytest
import rawpy
import SimpleITK
import tensorstore
import tifffile
from astropy.io import fits
from PIL import Image

from kpca_apps.images.dng import write_dng
from kpca_apps.images.files import encode_image, read_image
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.report.result_json import DOCUMENTS, to_json
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from kpca_apps.tables.write import scored_part, write_scored
from kpca_apps.tables.write_excel import Sheet, SheetColumn, cells_of, workbook_bytes
from tests.images import dng
from tests.images.laboratory.test_ome_zarr import made

pytestmark = [pytest.mark.release, pytest.mark.filterwarnings("ignore")]

Reader = Callable[[Path], Any]
# Readers whose package on PyPI has another name.
OTHERS = {"OpenCV": "opencv-python-headless", "LibRaw": "rawpy"}
GREY, RGB, RGBA, PLANES = (20, 30), (20, 30, 3), (20, 30, 4), (5, 20, 30)
SHAPES = {GREY: "grey", RGB: "RGB", RGBA: "RGBA", PLANES: "planes"}
WHOLE = "uint8 int8 int16 uint16 int32 uint32"
FLOATS = "float32 float64"


def by_opencv(path: Path) -> Any:
    import cv2  # imported here, because cv2 loads a linear algebra library of its own

    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    is_read, pages = cv2.imreadmulti(str(path), flags=cv2.IMREAD_UNCHANGED)
    if not is_read:
        raise ValueError("refused")
    pixels = np.squeeze(pages)
    return pixels[..., [2, 1, 0, 3][: pixels.shape[-1]]] if pixels.shape[-1] in (3, 4) else pixels


def by_openimageio(path: Path) -> Any:
    pages, how = list[Any](), oiio.ImageSpec()
    how.attribute("oiio:UnassociatedAlpha", 1)
    while (file := oiio.ImageInput.open(str(path), how)).seek_subimage(len(pages), 0):
        spec = file.spec()
        pages.append(file.read_image(len(pages), 0, 0, spec.nchannels, str(spec.format)))
    return pages


def by_pillow(path: Path) -> Any:
    with Image.open(path) as picture:
        pages = range(getattr(picture, "n_frames", 1))
        return [np.array(picture) for page in pages if not picture.seek(page)]


def by_nibabel(path: Path) -> Any:
    cells = np.asanyarray(nibabel.load(path).dataobj).T
    return np.stack([cells[name] for name in cells.dtype.names], -1) if cells.dtype.names else cells


def by_tensorstore(path: Path) -> Any:
    driver = "zarr3" if (path / "zarr.json").exists() else "zarr"
    place = {"driver": "file", "path": str(path / "0")}
    return tensorstore.open({"driver": driver, "kvstore": place}).result().read().result()


def by_hand(path: Path) -> Any:
    """Read a Zarr array from its chunks of one page each."""
    metadata = json.loads(next(iter(path.glob("0/*arr*"))).read_text())
    dtype = metadata.get("dtype") or metadata["data_type"]
    unpacked = imagecodecs.blosc_decode if "dtype" in metadata else imagecodecs.zstd_decode
    chunks = sorted([*path.glob("0/0.*.0.0"), *path.glob("0/c/*/*/0/0")])
    pages = (unpacked(chunk.read_bytes()) for chunk in chunks)
    return [np.frombuffer(page, dtype).reshape(GREY) for page in pages]


READERS: dict[str, Reader] = {
    "OpenCV": by_opencv,
    "OpenImageIO": by_openimageio,
    "Pillow": by_pillow,
    "SimpleITK": lambda path: SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path)),
    "LibRaw": lambda path: rawpy.imread(str(path)).raw_image_visible,
    "astropy": fits.getdata,
    "by_hand": by_hand,
    "fitsio": lambda path: fitsio.read(str(path)),
    "imagecodecs": imagecodecs.imread,
    "mrcfile": mrcfile.read,
    "nibabel": by_nibabel,
    "tensorstore": by_tensorstore,
    "tifffile": tifffile.imread,
}


def by_imagecodec(name: str, **options: Any) -> Callable[[Path, np.ndarray], object]:
    encode = getattr(imagecodecs, f"{name}_encode")
    return lambda path, pixels: path.write_bytes(encode(pixels, **options))


def saved(path: Path, pixels: np.ndarray, **options: Any) -> None:
    Image.fromarray(pixels).save(path, **options)


def tagged(path: Path, pixels: np.ndarray, **options: Any) -> None:
    meaning = "rgb" if pixels.shape in (RGB, RGBA) else "minisblack"
    tifffile.imwrite(path, pixels, **{"photometric": meaning, **options})


def unsigned_mrc(path: Path, pixels: np.ndarray) -> None:
    """Write unsigned bytes; the range in the MRC header shows that they are unsigned."""
    with mrcfile.new(path) as file:
        file.set_data(pixels.view("int8"))
        file.header.dmin, file.header.dmax, file.header.dmean = 0.0, 255.0, 127.5


def scanned(path: Path, pixels: np.ndarray) -> None:
    if pixels.shape in (RGB, RGBA):
        fields = [(name, "u1") for name in "RGBA"[: pixels.shape[-1]]]
        pixels = np.ascontiguousarray(pixels).view(fields)[..., 0]
    nibabel.save(nibabel.Nifti1Image(pixels.T, np.eye(4)), path)


def zarred(path: Path, pixels: np.ndarray, *, layout: int) -> None:
    made(path, pixels[np.newaxis], version=layout, chunks=(1, 1, *GREY), reduced=False)


LOSSLESS = {"level": 0, "reversible": True}
JPEG_2000, JPEG_XL = partial(by_imagecodec, "jpeg2k", **LOSSLESS), partial(by_imagecodec, "jpegxl")
AVIF = partial(by_imagecodec, "avif", level=100, speed=8)
# Format, suffix, writer of the input file, pixel types, shapes, readers to compare.
PICTURES: list[tuple[str, str, Any, str, list[tuple[int, ...]], str]] = [
    ("TIFF", ".tif", tagged, f"{WHOLE} {FLOATS} float16", [GREY, RGB, PLANES],
     "tifffile OpenImageIO OpenCV SimpleITK Pillow"),
    ("TIFF in tiles", ".tif", partial(tagged, tile=(16, 16), compression="zlib", byteorder=">"),
     f"{WHOLE} {FLOATS} float16", [GREY, RGB], "tifffile OpenCV"),
    ("TIFF with white as 0", ".tif", partial(tagged, photometric="miniswhite"), "uint8 uint16",
     [GREY], "tifffile OpenImageIO OpenCV SimpleITK Pillow"),
    ("PNG", ".png", by_imagecodec("png"), "uint8 uint16", [GREY, RGB, RGBA],
     "OpenImageIO OpenCV SimpleITK Pillow"),
    ("JPEG", ".jpg", partial(saved, quality=95), "uint8", [GREY, RGB],
     "OpenImageIO OpenCV SimpleITK"),
    ("WebP", ".webp", partial(saved, lossless=True, exact=True), "uint8", [RGB, RGBA],
     "OpenImageIO OpenCV imagecodecs"),
    ("BMP", ".bmp", saved, "uint8", [GREY, RGB], "OpenImageIO OpenCV imagecodecs"),
    ("Netpbm", ".ppm", saved, "uint8", [GREY, RGB], "OpenImageIO OpenCV"),
    ("Netpbm", ".pgm", saved, "uint16", [GREY], "OpenImageIO OpenCV"),
    ("Netpbm", ".pfm", saved, "float32", [GREY], "OpenImageIO OpenCV"),
    ("JPEG 2000", ".jp2", JPEG_2000(), "uint8 uint16", [GREY, RGB, RGBA],
     "OpenImageIO OpenCV Pillow"),
    ("JPEG 2000", ".jp2", JPEG_2000(bitspersample=12), "uint12", [GREY, RGB],
     "OpenImageIO OpenCV Pillow"),
    ("JPEG XL", ".jxl", JPEG_XL(lossless=True), "uint8 uint16 float32", [GREY, RGB, RGBA],
     "OpenImageIO Pillow"),
    ("JPEG XL", ".jxl", JPEG_XL(lossless=True, bitspersample=12), "uint12", [GREY, RGB],
     "OpenImageIO Pillow"),
    ("AVIF", ".avif", AVIF(), "uint8", [RGB, RGBA], "OpenCV Pillow"),
    ("AVIF", ".avif", AVIF(bitspersample=12), "uint12", [RGB], "OpenCV Pillow"),
    ("FITS", ".fits", lambda path, pixels: fits.PrimaryHDU(pixels).writeto(path),
     f"{WHOLE} {FLOATS}", [GREY, PLANES], "astropy fitsio"),
    ("OME-TIFF", ".fits", lambda path, pixels: fits.PrimaryHDU(pixels).writeto(path),
     f"{WHOLE} {FLOATS}", [PLANES], "tifffile OpenImageIO"),
    ("MRC", ".mrc", mrcfile.write, "int8 int16 uint16 float16 float32", [GREY, PLANES],
     "mrcfile SimpleITK"),
    ("MRC", ".mrc", unsigned_mrc, "uint8", [PLANES], "mrcfile SimpleITK"),
    ("NIfTI", ".nii", scanned, f"{WHOLE} {FLOATS}", [GREY, PLANES], "nibabel SimpleITK"),
    ("NIfTI", ".nii.gz", scanned, "uint8", [RGB, RGBA], "nibabel SimpleITK"),
    ("OME-Zarr 0.4", ".zarr", partial(zarred, layout=2), f"{WHOLE} {FLOATS} float16", [PLANES],
     "tensorstore by_hand"),
    ("OME-Zarr 0.5", ".zarr", partial(zarred, layout=3), f"{WHOLE} {FLOATS} float16", [PLANES],
     "tensorstore by_hand"),
]  # fmt: skip


def draw(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    rng, bits = np.random.default_rng(1), 12 if kind == "uint12" else 0
    dtype = np.dtype("uint16" if bits else kind)
    if dtype.kind == "f":
        pixels = rng.normal(100, 50, shape).astype(dtype)
        pixels.flat[:2] = np.finfo(dtype).max / 2, np.finfo(dtype).tiny
        return pixels
    low, high = (0, 2**bits - 1) if bits else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    pixels = rng.integers(low, high, shape, dtype, endpoint=True)
    pixels.flat[:2] = low, high
    return pixels


def write_flipped(format: str, path: Path, out: Path) -> np.ndarray:
    """Write the pixels of an image upside down and return them."""
    image = read_image(path)
    pages = [image.page(number)[::-1] for number in range(len(image.pages))]
    if out.suffix == ".zarr":
        out.mkdir()
        encode_image(out, pages, image)
    else:
        with out.open("wb+") as file:
            encode_image(file, pages, image, format="tiff" if format == "OME-TIFF" else "same")
    return np.stack(pages)


def negative(folder: Path) -> tuple[Path, np.ndarray]:
    image = read_image(dng.write_dng(folder / "in.dng", draw("uint12", (64, 80))))
    assert image.mosaic is not None
    mosaic, out = image.mosaic(), folder / "out.dng"
    with out.open("wb+") as file:
        write_dng(file, mosaic.light, mosaic, image)
    return out, mosaic.negative.counts(mosaic.light)


def pictures(folder: Path) -> Iterator[tuple[str, str, str, Path, np.ndarray]]:
    for number, (format, suffix, make, types, shapes, readers) in enumerate(PICTURES):
        for kind in types.split():
            for shape in shapes:
                values = f"{kind} {SHAPES[shape]}"
                path = folder / f"{number} {values}{suffix}"
                make(path, draw(kind, shape))
                ending = ".tif" if format == "OME-TIFF" else suffix
                out = path.with_name(f"out {path.name.removesuffix(suffix)}{ending}")
                pixels = write_flipped(format, path, out)
                assert pixels.dtype == draw(kind, shape).dtype
                yield format, values, readers, out, pixels
    yield "DNG", "uint16 mosaic", "tifffile LibRaw", *negative(folder)


def is_alike(read: Any, pixels: np.ndarray, near: int) -> bool:
    read, pixels = np.squeeze(read), np.squeeze(pixels)
    if read.shape != pixels.shape:
        return False
    return bool(np.allclose(read.astype("f8"), pixels.astype("f8"), rtol=0, atol=near))


Row = tuple[str, str, str]


def numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]


def compare_with_page(outcomes: dict[Row, str], repository: Path) -> tuple[set[Row], set[Row]]:
    """Print the matrix; return differences not on the page, and listed ones that did not occur.

    Listed differences of a reader installed in another version are not required to occur.
    """
    for (format, values, reader), outcome in outcomes.items():
        print(f"{format:22}{values:18}{reader:14}{outcome}")
    page = (repository / "docs" / "reference" / "other_tools.md").read_text("utf-8")
    lines = re.findall(r"^\| (.+) \| (.+) \| (\S+) ([0-9.]+) \|(?:.*\|){2}$", page, re.MULTILINE)
    readers = {(reader, listed) for *_, reader, listed in lines}
    if any(numbers(version(OTHERS.get(name, name))) < numbers(listed) for name, listed in readers):
        pytest.skip("a reader is older than the page tells")
    named, current = set[Row](), set[Row]()
    for formats, values, reader, listed in lines:
        rows = {(form, kind, reader) for form in formats.split(", ") for kind in values.split(", ")}
        named |= rows
        if listed == version(OTHERS.get(reader, reader)):
            current |= rows
    differing = {row for row, outcome in outcomes.items() if outcome == "differs"}
    read = {row[:2] for row, outcome in outcomes.items() if outcome in ("equal", "differs")}
    assert read == {row[:2] for row in outcomes}
    return differing - named, {row for row in current - differing if row in outcomes}


def test_pictures_are_the_same_to_other_readers(tmp_path: Path, repository: Path) -> None:
    outcomes = {}
    for format, values, readers, path, pixels in pictures(tmp_path):
        for reader in readers.split():
            try:
                read = np.asarray(READERS[reader](path))
            except Exception as error:
                outcomes[format, values, reader] = f"refused ({type(error).__name__})"
                continue
            is_equal = is_alike(read, pixels, near=16 if format == "JPEG" else 0)
            outcomes[format, values, reader] = "equal" if is_equal else "differs"
    assert compare_with_page(outcomes, repository) == (set(), set())


MOMENTS = [datetime.datetime(1900, 1, 1, 9), datetime.datetime(2999, 1, 1, 23, 59, 59, 1000), None]
COLUMNS = {
    "int64": pl.Series([-(2**63), 2**53 + 1, None]),
    "uint64": pl.Series([2**64 - 1, 2**53 + 1, None], dtype=pl.UInt64),
    "float64": pl.Series([0.1 + 0.2, 0.10000000149011612, None]),
    "infinity": pl.Series([float("inf"), -0.0, None]),
    "float32": pl.Series([0.1, 3e38, None], dtype=pl.Float32),
    "bool": pl.Series([True, False, None]),
    "text": pl.Series(['a "b",\tc;d', " \U0001f600 ", None]),
    "lines": pl.Series(["a\r\nb", "c\nd", None]),
    "codes": pl.Series(["007", "1e5", None]),
    "words": pl.Series(["NA", "null", "nan"]),
    "date": pl.Series([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "time in ms": pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
    "time in us": pl.Series(MOMENTS, dtype=pl.Datetime("us")),
    "time in ns": pl.Series([1, 10**18 + 1, None]).cast(pl.Datetime("ns")),
    "time with a zone": pl.Series(MOMENTS).dt.replace_time_zone("Asia/Tokyo"),
    "time of day": pl.Series([datetime.time(0, 0, 1), datetime.time(23, 59, 59, 999999), None]),
}
TABLES: dict[str, dict[str, Reader]] = {
    "CSV": {
        "pandas": lambda path: pd.read_csv(path)["x"].tolist(),
        "pyarrow": lambda path: pyarrow.csv.read_csv(path)["x"].to_pylist(),
        "DuckDB": lambda path: [x for (x,) in duckdb.sql(f"select x from '{path}'").fetchall()],
    },
    "Parquet": {
        "polars": lambda path: pl.read_parquet(path)["x"].to_list(),
        "DuckDB": lambda path: [x for (x,) in duckdb.sql(f"select x from '{path}'").fetchall()],
    },
    "Excel": {
        "openpyxl": lambda path: [row[0].value for row in openpyxl.load_workbook(path).active][1:],
        "fastexcel": lambda path: list(fastexcel.read_excel(path).load_sheet(0).to_polars()["x"]),
    },
    "JSON": {
        "pandas": lambda path: pd.read_json(path, typ="series")["x"],
        "polars": lambda path: pl.read_json(path)["x"].to_list()[0],
        "DuckDB": lambda path: duckdb.sql(f"select x from '{path}'").fetchall()[0][0],
    },
}


def save(table: Table, path: Path, format: str) -> None:
    if format == "Excel":
        columns = SheetColumn("x", cells_of(table.column["x"], None)), SheetColumn("row", [1, 2, 3])
        path.write_bytes(workbook_bytes([Sheet("x", columns, [()] * 3, 0)])[0])
    elif format == "JSON":
        path.write_text(to_json(DOCUMENTS[ScreeningResult], table.frame.to_dict(as_series=False)))
    else:
        write_scored(path, [scored_part(table, {"row": np.arange(3)}, format.lower())])


def is_cell(read: Any, cell: Any) -> bool:
    """Return True if a reader returned the cell's value, possibly as text; NaN and "" mean None."""
    if pd.isna(read) or read == "":
        return cell is None
    if isinstance(read, str) and not isinstance(cell, str | None):
        moment = datetime.time if isinstance(cell, datetime.time) else datetime.datetime
        make = {bool: json.loads, int: int, float: float}.get(type(cell), moment.fromisoformat)
        read = make(read.strip('"'))
    if isinstance(read, pd.Timestamp):
        read = read.to_pydatetime(warn=False)
    if isinstance(read, datetime.time) and isinstance(cell, str):
        cell = datetime.time.fromisoformat(cell)
    if isinstance(read, datetime.datetime) and not isinstance(cell, datetime.datetime):
        cell = datetime.datetime.combine(cell, datetime.time())
    if isinstance(cell, datetime.datetime) and cell.tzinfo and not read.tzinfo:
        cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return bool(np.float32(read) == cell if isinstance(cell, np.float32) else read == cell)


def test_tables_are_the_same_to_other_readers(tmp_path: Path, repository: Path) -> None:
    outcomes = {}
    for values, column in COLUMNS.items():
        table = table_from_frame(pl.DataFrame({"x": column}))
        cells = table.frame["x"].to_list()
        if values == "float32":
            cells = [cell and np.float32(cell) for cell in cells]
        for format, readers in TABLES.items():
            if format == "JSON" and table.frame["x"].dtype.is_temporal():
                continue
            path = tmp_path / f"{values}.{format.lower().replace('excel', 'xlsx')}"
            save(table, path, format)
            for reader, read in readers.items():
                read_cells = read(path)
                is_equal = len(read_cells) == len(cells) and all(map(is_cell, read_cells, cells))
                outcomes[format, values, reader] = "equal" if is_equal else "differs"
    assert compare_with_page(outcomes, repository) == (set(), set())
