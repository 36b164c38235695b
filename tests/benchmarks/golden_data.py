"""Make the tables and images for `golden` with fixed seeds, byte for byte reproducible."""

import datetime
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import tifffile
import xlsxwriter
from PIL import Image

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
N_LARGE = 100_400  # more than 100,000 rows, so read in parts


def mixed(n: int, seed: int = 0, *, clean: bool = False) -> pl.DataFrame:
    """Return rows as if typed by hand: units, dates, flags, odd cells, duplicates, misspellings."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    kind = rng.choice(["birch", "oak", "maple", "spruce"], n, p=[0.4, 0.3, 0.2, 0.1])
    height, girth = 12 + 2 * size + 0.3 * rng.normal(size=n), 80 + 15 * size + rng.normal(size=n)
    day = datetime.date(2021, 3, 1)
    dates = [day + datetime.timedelta(days=int(d)) for d in rng.integers(0, 300, n)]
    columns: dict[str, list[str | None]] = {
        "tree": [f"T-{seed}{i:05d}" for i in range(n)],
        "kind": [str(k) for k in kind],
        "height": [f"{h:.2f} m" for h in height],
        "girth": [f"{g:.1f}" for g in girth],
        "planted": [d.strftime("%d.%m.%Y") for d in dates],
        "healthy": ["yes" if h else "no" for h in rng.random(n) < 0.9],
        "rings": [str(int(r)) for r in 20 + 5 * size + rng.poisson(3, n)],
        "plot": [f"plot {p}" for p in rng.integers(1, 4, n)],
        "known": ["usual"] * n,
    }
    if not clean:
        for i in rng.choice(n, n // 40, replace=False):
            columns["girth"][i] = f"{160 - girth[i]:.1f}"
            columns["known"][i] = "odd"
        for column, at, cell in (
            ("girth", 5, "8O.1"),
            ("height", 11, "1250 cm"),
            ("kind", 17, "bitch"),
            ("kind", 18, "Oak "),
            ("planted", 23, "31.11.2021"),
            ("planted", 24, "03.04.1021"),
            ("rings", 29, "-4"),
            ("rings", 30, "2 3"),
            ("healthy", 31, "maybe"),
            ("height", 37, "=SUM(A1)"),
        ):
            columns[column][at] = cell
        for column in ("girth", "rings", "kind"):
            for i in rng.choice(np.arange(40, n), n // 30, replace=False):
                columns[column][i] = None
        for cells in columns.values():
            cells[-3:] = cells[-6:-3]  # duplicate rows
    return pl.DataFrame(columns)


def typed(n: int, seed: int) -> pl.DataFrame:
    """Return typed columns: numbers, dates, times, booleans, categories."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    start = datetime.datetime(2022, 5, 1)
    frame = pl.DataFrame(
        {
            "id": np.arange(1000, 1000 + n),
            "length": np.round(50 + 9 * size, 3),
            "mass": np.round(np.exp(1 + 0.5 * size + 0.05 * rng.normal(size=n)), 4),
            "count": rng.poisson(4, n),
            "seen": [start + datetime.timedelta(minutes=int(m)) for m in rng.integers(0, 9**6, n)],
            "ringed": rng.random(n) < 0.3,
            "site": pl.Series(rng.choice(["north", "south", "west"], n), dtype=pl.Categorical),
            "known": np.where(np.arange(n) % 50 == 7, 1, 0),
        }
    )
    mass = pl.when(pl.col("known") == 1).then(40 - pl.col("mass")).otherwise("mass").alias("mass")
    gap = pl.when(pl.col("id") % 31 == 0).then(None).otherwise(pl.col("length")).alias("length")
    return frame.with_columns(mass, gap)


def large(columns: int, seed: int) -> pl.DataFrame:
    """Return more rows than are read into memory at once."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N_LARGE)
    data = {f"x{i}": np.round(size + (1 + i) * rng.normal(size=N_LARGE), 3) for i in range(columns)}
    return pl.DataFrame({**data, "group": rng.choice(["a", "b", "c"], N_LARGE, p=[0.6, 0.3, 0.1])})


def make_tables(folder: Path) -> None:
    frame, clean = mixed(300), mixed(240, 1, clean=True)
    frame.with_columns(pl.col(["height", "girth"]).str.replace(".", ",", literal=True)).write_csv(
        folder / "semicolon.csv", separator=";"
    )
    frame.write_csv(folder / "mixed.tsv", separator="\t")
    frame.write_csv(folder / "mixed.csv")
    clean.drop("known").write_csv(folder / "clean.csv")
    mixed(200, 2).write_csv(folder / "later.csv")
    frame.filter(pl.col("known") == "odd").head(3).write_csv(folder / "accept.csv")
    (folder / "mixed.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0))
    (folder / "wide.csv").write_bytes(frame.write_csv().encode("utf-16"))
    (folder / "list.json").write_text(json.dumps(frame.to_dicts()), encoding="utf-8")
    typed(260, 3).drop("seen").write_ndjson(folder / "lines.jsonl")
    typed(260, 4).write_parquet(folder / "typed.parquet")
    typed(240, 5).write_ipc(folder / "typed.arrow")
    typed(240, 6).write_ipc(folder / "typed.feather")
    with xlsxwriter.Workbook(folder / "book.xlsx") as book:
        book.set_properties({"created": datetime.datetime(2020, 1, 1)})
        pl.DataFrame({"nothing": ["here"]}).write_excel(book, "notes")
        typed(220, 7).write_excel(book, "sizes")
    (folder / "parts").mkdir()
    for i, part in enumerate(frame.iter_slices(100)):
        part.write_csv(folder / "parts" / f"part{i}.csv")
    lines = frame.write_csv().splitlines()
    lines[60] += ",too,many"
    titled = ["Trees of the park", "", *lines, "total,,,,,,,,"]
    (folder / "titled.csv").write_text("\n".join(titled), encoding="utf-8")
    (folder / "few.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    large(5, 8).drop("group").write_csv(folder / "large.csv")
    large(2, 9).write_csv(folder / "groups.csv")
    for name in ("penguins_faults.csv", "breast_cancer.csv", "ring_line_square.csv"):
        (folder / name).write_bytes((DATASETS / name).read_bytes())


def picture(name: str, side: int = 112) -> np.ndarray:
    """Return a crop of a clean photograph in 0..1."""
    with Image.open(DATASETS / "photographs" / "clean" / name) as image:
        part = image.crop((60, 60, 60 + side, 60 + side))
    return np.array(part, dtype=np.float64) / 255


def whole(image: np.ndarray, most: int = 255) -> np.ndarray:
    """Scale an image from 0..1 to integers."""
    return np.clip(np.rint(image * most), 0, most).astype(np.uint8 if most < 256 else np.uint16)


def make_images(folder: Path) -> None:
    """Write small images with many kinds of noise, and clean versions of some."""
    rng = np.random.default_rng(0)

    def noise(image: np.ndarray, sigma: float = 20 / 255) -> np.ndarray:
        return image + sigma * rng.standard_normal(image.shape)

    grey, colour = picture("camera.png"), picture("astronaut.png", 96)
    text = picture("text.png", 100)
    images = {
        "grey": whole(noise(grey)),
        "quiet": whole(grey),
        "colour": whole(noise(colour)),
        "alpha": np.dstack([whole(noise(colour)), whole(colour[..., 0])]),
        "text": whole(noise(text, 0.12)),
        "poisson": whole(rng.poisson(grey * 40) / 40),
        "speckle": whole(grey * (1 + 0.15 * rng.standard_normal(grey.shape))),
        "impulse": np.where(rng.random(grey.shape) < 0.1, 255, whole(grey)).astype(np.uint8),
        "same/one": whole(noise(grey, 0.05)),
        "same/two": whole(noise(grey.T, 0.06)),
        "same/three": whole(noise(grey[::-1], 0.055)),
    }
    (folder / "same").mkdir()
    (folder / "truth").mkdir()
    for name, pixels in images.items():
        Image.fromarray(pixels).save(folder / f"{name}.png")
    Image.fromarray(whole(grey)).save(folder / "truth" / "grey.png")
    Image.fromarray(whole(colour)).save(folder / "truth" / "colour.png")
    with Image.open(DATASETS / "photographs" / "noisy" / "coffee.jpg") as image:
        image.crop((96, 96, 224, 208)).save(folder / "camera.jpg", quality=92, subsampling=0)
    # An image of 16 bits with Poisson and read noise, and an image of 12 bits stored in 16.
    counted = rng.poisson(grey * 60) / 60 + 0.02 * rng.standard_normal(grey.shape)
    tifffile.imwrite(folder / "deep.tif", whole(counted, 65535))
    tifffile.imwrite(folder / "twelve.tif", whole(noise(grey, 0.06), 4095))
    film = np.stack([noise(np.roll(grey[:96, :96], i, 1), 0.08) for i in range(4)])
    tifffile.imwrite(
        folder / "film.tif", film.astype(np.float32), imagej=True, metadata={"axes": "TYX"}
    )
    tifffile.imwrite(folder / "float.tif", noise(100 * grey[:96, :96], 9.0))
    write_mosaic(folder / "mosaic.dng", np.kron(colour[:64, :64], np.ones((2, 2, 1))), rng)
    (folder / "each.csv").write_text("file,strength,sigma\ngrey.png,0.5,\ncolour.png,,15\n")


def seen_by_sensor(light: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Simulate the RGGB mosaic of a 12-bit sensor from light (h, w, 3) in 0..1."""
    mosaic = light[..., 1].copy()
    mosaic[0::2, 0::2], mosaic[1::2, 1::2] = light[0::2, 0::2, 0], light[1::2, 1::2, 2]
    mosaic = 0.05 + 0.9 * mosaic
    signal = rng.poisson(mosaic * 200) / 200 + 0.01 * rng.standard_normal(mosaic.shape)
    return np.clip(256 + 3800 * signal, 0, 4095).astype(np.uint16)


def write_mosaic(path: Path, light: np.ndarray, rng: np.random.Generator) -> None:
    """Write a camera raw file as a DNG."""
    matrix = [9000, -2000, -1000, -4000, 13000, 1000, -500, 2000, 6000]
    tags = [
        (271, 2, 0, b"Maker", True),
        (272, 2, 0, b"Model", True),
        (306, 2, 0, b"2026:01:02 03:04:05", True),
        (50706, 1, 4, bytes([1, 4, 0, 0]), True),
        (50708, 2, 0, b"Maker Model", True),
        (50714, 3, 1, (256,), True),
        (50717, 3, 1, 4095, True),
        (50721, 10, 9, tuple(n for value in matrix for n in (value, 10000)), True),
        (50728, 5, 3, (5000, 10000, 10000, 10000, 6500, 10000), True),
        (50778, 3, 1, 21, True),
        (33421, 3, 2, (2, 2), True),
        (33422, 1, 4, bytes([0, 1, 1, 2]), True),
    ]
    with tifffile.TiffWriter(path) as file:
        mosaic = seen_by_sensor(light, rng)
        file.write(mosaic, photometric=32803, extratags=tags, metadata=None, software=False)
