"""Provide the fuzzer's seed files for each entry point, and mutations that keep files readable.

Byte mutations rarely pass a checksum, compression or syntax, so JSON is changed value by value, zip
members and gzip contents are changed and compressed again, arrays get other headers and values, PNG
chunks new checksums, TIFF tags and FITS cards other types and values.
"""

import bz2
import datetime
import gzip
import io
import json
import lzma
import random
import re
import sqlite3
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.doors import IMAGES, finished_batch, finished_run, sound_table

MAX_BYTES = 1 << 17  # largest size of a seed file
Change = Callable[[bytes], bytes]  # the fuzzer's function that changes bytes at random

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 255, 256, 10**6, 2**31, 2**53, 2**63 - 1, -(2**63), 2**70,
    10**400, 0.0, 0.5, 1e-320, 1e100, 1e155, 1e308, -1e308, float("inf"), -float("inf"),
    float("nan"), "", "x", "nan", "\0", "a\nb", "\ud800", "2020-02-30", "l" * 5000, [], {}, [[]],
    {"": None},
)  # fmt: skip
TOKENS = (
    b"0", b"-1", b"1", b"255", b"256", b"65536", b"-32768", b"2147483648", b"18446744073709551616",
    b"1e999", b"-1e308", b"1e-320", b"nan", b"inf", b"-inf", b"true", b"[]", b"{}", b"''", b'""',
    b"1979-05-27", b"'a\\u0000b'", b"*", b"=1+1", b"\xff\xfe", b"\\ud800", b"", b"9" * 400,
    b"[" * 3000,
)  # fmt: skip
DTYPES = ("<f4", ">f8", "<i8", "|b1", "|O", "<c16", "<U8", "<M8[ns]", "|V8", "[('a', '<f8')]")
# TIFF tag numbers, types, counts and values; FITS card names and values.
TAGS = (258, 259, 262, 266, 273, 277, 284, 317, 320, 322, 323, 324, 330, 338, 339, 347, 700, 33421,
        33422, 34665, 34675, 50713, 50714, 50717, 50721, 50728)  # fmt: skip
TAG_KINDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18)
TAG_COUNTS = (0, 1, 2, 3, 4, 9, 1 << 16, (1 << 32) - 1)
TAG_VALUES = (0, 1, 2, 3, 7, 8, 16, 32, 255, 65535, 1 << 20, (1 << 32) - 1)
CARDS = b"""BLANK BSCALE BZERO NAXIS NAXIS1 NAXIS2 NAXIS3 BITPIX CTYPE3 EXTNAME ZIMAGE PCOUNT GCOUNT
    GROUPS XTENSION DATAMIN CHECKSUM THEAP TFIELDS INHERIT""".split()
CARD_VALUES = b"""0 1 -1 8 16 -32 64 255 -32768 99999 1E400 1E-320 1E300 NaN T F 'FREQ' 'TIME' ''
    (1,2)""".split()


def seeds(target: str) -> list[bytes]:
    """Return valid files of at most `MAX_BYTES` for an entry point."""
    return [data for data in _seeds(target) if len(data) <= MAX_BYTES]


def _seeds(target: str) -> list[bytes]:
    if target in TABLES:
        made = [TABLES[target](random.Random(number)) for number in range(6)]
        return [*made, *([_ods()] if target == "xlsx" else [])]
    if target != "raw" and target in (*IMAGES, "zarr"):
        from tests.benchmarks.mutated_images import originals

        return originals(target)
    with tempfile.TemporaryDirectory() as name:
        return _OTHERS[target](Path(name))


def rows(n_rows: int = 40) -> pl.DataFrame:
    """Return a table with every column type."""
    rng, day, noon = random.Random(0), datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
    return pl.DataFrame(
        {
            "x": [round(rng.gauss(0, 10), 3) for _ in range(n_rows)],
            "n": [rng.randrange(100) for _ in range(n_rows)],
            "flag": [rng.random() < 0.5 for _ in range(n_rows)],
            "kind": [rng.choice(["red", "green", 'say "hi",\nand go', ""]) for _ in range(n_rows)],
            "day": [day + datetime.timedelta(days=k) for k in range(n_rows)],
            "at": [noon + datetime.timedelta(minutes=k % 60) for k in range(n_rows)],
        }
    )


def nested(rng: random.Random) -> pl.DataFrame:
    """Return a table with a categorical column, a column of lists and a column of structs."""
    return rows(rng.choice([3, 40, 400])).with_columns(
        pl.col("kind").cast(pl.Categorical).alias("category"),
        pl.concat_list("n", "n").alias("list"),
        pl.struct("x", "kind").alias("struct"),
    )


def _csv(rng: random.Random) -> bytes:
    text = rows().write_csv(separator=rng.choice(",;\t|"))
    text = text.replace("\n", rng.choice(["\n", "\n", "\r\n", "\r"]))
    data = text.encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return gzip.compress(data, mtime=0) if rng.random() < 0.2 else data


def _records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows().write_ndjson().splitlines()]


def _json_lines(rng: random.Random) -> bytes:
    records = _records()
    for record in records[rng.randrange(7) :: 7]:
        record["more"] = {"a": [1, None, {"b": "c"}]}
    return "".join(json.dumps(record) + "\n" for record in records).encode("utf-8")


def _json_list(rng: random.Random) -> bytes:
    document = _records() if rng.random() < 0.5 else {"n": 40, "data": _records(), "next": None}
    return json.dumps(document, indent=rng.choice([None, 1])).encode("utf-8")


def _parquet(rng: random.Random) -> bytes:
    buffer, frame = io.BytesIO(), nested(rng)
    packing = rng.choice(["uncompressed", "snappy", "zstd", "lz4", "gzip"])
    if rng.random() < 0.5:
        frame.write_parquet(buffer, compression=packing, row_group_size=rng.choice([7, 1000]))
        return buffer.getvalue()
    options = {"compression": "none" if packing == "uncompressed" else packing}
    options |= {"data_page_version": rng.choice(["1.0", "2.0"])}
    pq.write_table(frame.to_arrow(), buffer, use_dictionary=rng.random() < 0.5, **options)
    return buffer.getvalue()


def _arrow(rng: random.Random) -> bytes:
    buffer, level = io.BytesIO(), pl.CompatLevel.oldest() if rng.random() < 0.5 else None
    table = nested(rng).to_arrow(compat_level=level)
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
    write = pa.ipc.new_file if rng.random() < 0.5 else pa.ipc.new_stream
    with write(buffer, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rng.choice([7, 1000]))
    return buffer.getvalue()


def _packed(rng: random.Random) -> bytes:
    data, packing = _csv(rng), rng.randrange(6)
    if packing < 3:
        pack = (bz2.compress, lzma.compress, lambda text: pa.compress(text, "zstd", asbytes=True))
        return bytes(pack[packing](data))
    method = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)[packing - 3]
    return _zipped({"folder/": b"", "folder/table.csv": data}, method)


def _xlsx(rng: random.Random) -> bytes:
    """Write a workbook, sometimes uncompressed so that mutations reach its parts."""
    book = openpyxl.Workbook()
    for row in (rows().columns, *rows().iter_rows()):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    if rng.random() < 0.5:
        return buffer.getvalue()
    with zipfile.ZipFile(buffer) as archive:
        return _zipped({name: archive.read(name) for name in archive.namelist()})


TABLES: dict[str, Callable[[random.Random], bytes]] = {
    "csv": _csv, "jsonl": _json_lines, "json": _json_list, "parquet": _parquet, "arrow": _arrow,
    "packed": _packed, "xlsx": _xlsx,
}  # fmt: skip


def _models(folder: Path) -> list[bytes]:
    """Return novelty models with a Tikhonov filter and with truncation."""
    from kpca_apps.novelty.screening.fit import fit_table
    from kpca_apps.novelty.screening.model import ScreeningOptions, save_model
    from tests.novelty.screening.test_hostile_models import mixed

    warnings.simplefilter("ignore")
    for method in ("blocks", "hoffmann"):
        save_model(fit_table(mixed(24), ScreeningOptions(method=method))[0], folder / method)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def _dictionary(folder: Path) -> list[bytes]:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

    examples = np.random.default_rng(0).random((40, 5, 5))
    DictionaryDenoiser(sigma=0.1).fit(examples).save(folder / "model")
    return [(folder / "model").read_bytes()]


def _raw(folder: Path) -> list[bytes]:
    from tests.images.dng import write_dng

    mosaic = np.random.default_rng(0).integers(300, 4000, (24, 32)).astype(np.uint16)
    options: list[dict[str, Any]] = [{}, {"noise": (1e-4, 1e-6), "black": (250, 256, 256, 260)}]
    paths = [write_dng(folder / f"{n}.dng", mosaic, **tags) for n, tags in enumerate(options)]
    return [path.read_bytes() for path in paths]


def _ods() -> bytes:
    cell = (
        '<table:table-cell office:value-type="{}" office:value="{}"><text:p>{}</text:p>'
        "</table:table-cell>"
    )
    rows = (
        [["string", "", "a"], ["string", "", "b"]],
        *([["float", n, n], ["float", n * n, n * n]] for n in range(5)),
    )
    body = "".join(
        f"<table:table-row>{''.join(cell.format(*value) for value in row)}</table:table-row>"
        for row in rows
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet>'
        f'<table:table table:name="S">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    return _zipped(
        {
            "mimetype": kind.encode(),
            "content.xml": content.encode(),
            "META-INF/manifest.xml": manifest.encode(),
        }
    )


def _zipped(members: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return buffer.getvalue()


def _packed_folder(folder: Path) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return _zipped({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path (keys and indices) of each value in a JSON document."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [place for key, own in items for place in ((*path, key), *_places(own, (*path, key)))]


def _config(folder: Path) -> list[bytes]:
    return [
        b'share = 0.05\nexclude = ["a", "b"]\nid = "n"\nquiet = true\njobs = 2\n',
        b'alpha = 0.1\nkernel = "rbf"\nseed = 3\nlandmarks = 200\nby = ["g"]\nout = "o"\n',
        b'noise = "gaussian"\nsigma = "12"\nstrength = 0.5\nquality = "fast"\nregion = "0,0,9,9"\n',
        b"mask = 'm.png'\njobs = 1\nformat = 'png'\nstack = true\njson = true\n",
    ]


def _accept(folder: Path) -> list[bytes]:
    from kpca_apps.novelty.accepted import row_keys

    table = sound_table()
    frame = table.frame[:5]
    listed = "".join(f"{key},{n + 1},wrong,why\n" for n, key in enumerate(row_keys(table, ())[:4]))
    header = ",".join(frame.columns)
    return [
        frame.write_csv().encode(),
        frame[:, :3].write_csv(separator=";").encode(),
        f"{header}\n{','.join('*' for _ in frame.columns)}\n".encode(),
        f"row_key,row,mark,note\n{listed}".encode(),
    ]


def _marks(folder: Path) -> list[bytes]:
    from kpca_apps.novelty.accepted import row_keys
    from kpca_apps.novelty.result import MARKS_FORMAT

    table = sound_table()
    marks = [
        {"key": key, "mark": kind, "row": number, "line": number + 1, "id": "x", "note": "<b>"}
        for number, (key, kind) in enumerate(
            zip(row_keys(table, ()), ("wrong", "fine", "known"), strict=False), 1
        )
    ]
    block = json.dumps(
        {"format": MARKS_FORMAT, "columns": table.frame.columns, "marks": marks}
    ).encode()
    sign = b'<!doctype html><p>A page</p><script type="application/json" id="marks">'
    return [sign + block + b"</script>", sign + block.replace(b'"', b"&quot;") + b"</script>"]


def _rules(folder: Path) -> list[bytes]:
    from kpca_apps.novelty.columns.parts import Execution
    from kpca_apps.novelty.columns.plan import ColumnOptions
    from kpca_apps.novelty.relations.rule_file import rules_to_json
    from kpca_apps.novelty.relations.table_rules import find_table_rules
    from tests.hostile.doors import ruled_table
    from tests.novelty.relations.ruled import held, ruled_frame

    found = find_table_rules(ruled_table(), ColumnOptions(), seed=0, execution=Execution())
    return [rules_to_json(rules).encode() for rules in (found, held(ruled_frame(40)))]


def _profile(folder: Path) -> list[bytes]:
    law = {
        "gain": 0.01, "constant": 1e-4, "blur": 0.0, "interval": [0.009, 0.011],
        "established": True, "clipped": False, "rises": True, "shared": False,
        "log_odds_flat": 9.0, "log_odds_white": 9.0,
        "brightness": [0.1, 0.5, 0.9], "variances": [1e-3, 5e-3, 9e-3],
    }  # fmt: skip
    kinds = [
        {"images": "20 x 30", "n_images": 3, "sigma": [4.5]},
        {"images": "camera at ISO 100", "n_images": 2, "curves": [[1.0, 2.0]] * 3},
        {"images": "others", "n_images": 1, "laws": [law]},
    ]
    return [json.dumps({"kind": "noise profile", "schema_version": 1, "kinds": kinds}).encode()]


def _per_image(folder: Path) -> list[bytes]:
    return [
        b"file,strength,sigma,noise,note\na.png,0.5,12,gaussian,x\nb.png,,auto,poisson,\n",
        b"file;luma;chroma;quality\na.png;0,5;1;fast\n",
    ]


def _finished(folder: Path) -> list[bytes]:
    from kpca_apps.system.finished import FinishedParts, FinishedPass

    parts = FinishedParts(folder / "parts")
    FinishedPass(parts, "key", np.ndarray).put(0, 5, np.arange(5.0))
    return [parts._path("key 0 5").read_bytes()]


def _delta(folder: Path) -> list[bytes]:
    from deltalake import DeltaTable, write_deltalake

    frame = rows(12)
    write_deltalake(str(folder / "t"), frame[:6].to_arrow())
    write_deltalake(str(folder / "t"), frame[6:].to_arrow(), mode="append")
    DeltaTable(str(folder / "t")).delete("n > 50")
    write_deltalake(str(folder / "p"), frame[:6].to_arrow(), partition_by=["flag"])
    return [_packed_folder(folder / name) for name in "tp"]


def _hive(folder: Path) -> list[bytes]:
    frame = rows(6)
    for part in ("csv", "parquet"):
        for key in ("1", "x%20y"):
            place = folder / part / f"key={key}"
            place.mkdir(parents=True)
            write = frame.write_csv if part == "csv" else frame.write_parquet
            write(place / f"a.{part}")
    return [_packed_folder(folder / part) for part in ("csv", "parquet")]


def _sqlite(folder: Path) -> list[bytes]:
    path = folder / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b REAL, c TEXT, d BLOB, e)")
        rows = [(n, n / 3, f"é{n}", bytes([n]), n if n % 2 else "x") for n in range(40)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    return [path.read_bytes()]


def _mask(folder: Path) -> list[bytes]:
    from PIL import Image

    from tests.hostile.images import saved, texture, tiff

    grey = texture(20, 30)
    bits = io.BytesIO()
    Image.fromarray(grey > 99).save(bits, "PNG")
    return [saved(grey, "PNG"), bits.getvalue(), tiff(grey), saved(texture(20, 30, 3), "BMP")]


_OTHERS: dict[str, Callable[[Path], list[bytes]]] = {
    "model": _models, "dictionary": _dictionary, "config": _config, "accept": _accept,
    "marks": _marks, "rules": _rules, "profile": _profile, "per_image": _per_image,
    "finished": _finished, "delta": _delta, "hive": _hive, "sqlite": _sqlite, "mask": _mask,
    "raw": _raw,
    "manifest": lambda _: [(finished_batch() / "out" / "manifest.jsonl").read_bytes()],
    "marker": lambda _: [(finished_run() / "run.json").read_bytes()],
    "run": lambda _: [(finished_run() / "result.json").read_bytes()],
}  # fmt: skip


def changed(target: str, data: bytes, change: Change, seed: int) -> bytes:
    """Mutate a file of a target: mostly by its structure, sometimes by bytes alone."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.75:
        try:
            return _changed(target, data, change, rng)
        except Exception:  # an earlier mutation broke the structure
            pass
    return change(data)


def _changed(target: str, data: bytes, change: Change, rng: np.random.Generator) -> bytes:
    if data.startswith(b"PK"):
        return _member_changed(data, change, rng)
    if data.startswith(b"\x1f\x8b"):
        inner = gzip.decompress(data[: 1 << 20])[: 1 << 20]
        return gzip.compress(_part_changed(inner, change, rng), mtime=0)
    return _part_changed(data, change, rng, target)


def _part_changed(data: bytes, change: Change, rng: np.random.Generator, target: str = "") -> bytes:
    """Mutate a file, or an uncompressed member of an archive."""
    if data.startswith(b"\x93NUMPY"):
        return _array_changed(data, change, rng)
    if data.startswith(b"\x89PNG"):
        return _chunk_changed(data, change, rng)
    if data.startswith((b"II*\0", b"MM\0*", b"II+\0")) and rng.random() < 0.7:
        return _tag_changed(data, rng)
    if data.startswith(b"SIMPLE  =") and rng.random() < 0.7:
        return _card_changed(data, rng)
    if target in IMAGES:
        from tests.benchmarks.mutated_images import damaged

        if target != "raw" and rng.random() < 0.5:
            return damaged(target, data, rng)[1]
        return _token_changed(data, rng, same_length=rng.random() < 0.8)
    if rng.random() < 0.8 and (found := _json_changed(data, rng)) is not None:
        return found
    return _token_changed(data, rng)


def _member_changed(data: bytes, change: Change, rng: np.random.Generator) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        is_packed = any(member.compress_type for member in archive.infolist())
    names = list(members)
    # A model has one JSON part and many arrays, so choose the JSON part more often.
    headers = [name for name in names if name.endswith(".json")]
    name = headers[0] if headers and rng.random() < 0.4 else names[int(rng.integers(len(names)))]
    what = rng.random()
    if what < 0.05:
        del members[name]
    elif what < 0.1:
        members[names[int(rng.integers(len(names)))]] = members[name]
    elif what < 0.4:
        members[name] = change(members[name])
    else:
        members[name] = _part_changed(members[name], change, rng)
    packing = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
    return _zipped(members, packing)


def _array_changed(data: bytes, change: Change, rng: np.random.Generator) -> bytes:
    """Replace an array's values, or give its header another type or shape."""
    array = np.load(io.BytesIO(data)).copy()
    what, shape, described = int(rng.integers(8)), array.shape, array.dtype.str
    if what < 4:
        numbers = [v for v in VALUES if isinstance(v, float | int) and abs(v) < 2**63]
        value = np.array(numbers[int(rng.integers(len(numbers)))]).astype(array.dtype)
        if what == 0 and array.size:
            array.flat[rng.integers(array.size)] = value
        elif what == 1:
            array[...] = value
        elif what == 2:
            array = rng.permutation(array.ravel()).reshape(shape)
        else:
            array = (array * rng.choice([-1.0, 1e-200, 1e3, 1e200])).astype(array.dtype)
        buffer = io.BytesIO()
        np.save(buffer, array)
        return buffer.getvalue()
    content = array.tobytes()
    if what == 4:
        described = DTYPES[int(rng.integers(len(DTYPES)))]
    elif what == 5:
        at = int(rng.integers(max(len(shape), 1)))
        sizes = (0, -1, 1, 7, 10**6, 2**53, 2**63 - 1, *(n + by for n in shape for by in (-1, 1)))
        shape = (*shape[:at], sizes[int(rng.integers(len(sizes)))], *shape[at + 1 :])
    elif what == 6:  # declare other lengths, and append enough bytes for them
        shape = tuple(int(rng.integers(0, 2 * n + 2)) for n in shape)
        content = np.resize(array, shape).tobytes() if array.size else b""
    else:
        shape = shape[::-1] if len(shape) > 1 else (1, *shape)
    header = f"{{'descr': '{described}', 'fortran_order': {what == 7}, 'shape': {shape}, }}\n"
    packed = header.encode() if rng.random() < 0.9 else change(header.encode())[: 1 << 15]
    return b"\x93NUMPY\x01\x00" + len(packed).to_bytes(2, "little") + packed + content


def _json_changed(data: bytes, rng: np.random.Generator) -> bytes | None:
    """Change a value in a JSON document, a JSON line, or the JSON block of an HTML page."""
    text = data.decode("utf-8", "surrogateescape")
    found = re.search(r"<script[^>]*>(.*)</script>", text, re.DOTALL)
    spans = [found.span(1)] if found else [(0, len(text))]
    lines = [match.span() for match in re.finditer(r"[^\n]+", text)]
    if len(lines) > 1:
        spans += [lines[int(rng.integers(len(lines)))]]
    for start, stop in spans:
        try:
            document = json.loads(text[start:stop])
            places = _places(document)
        except (ValueError, RecursionError):
            continue
        if not places:
            continue
        for _ in range(int(rng.integers(1, 3))):
            *path, key = places[int(rng.integers(len(places)))]
            parent = document
            try:
                for step in path:
                    parent = parent[step]
                if rng.random() < 0.1:
                    del parent[key]
                elif rng.random() < 0.1 and isinstance(parent, dict):
                    parent["more"] = parent[key]
                else:
                    own = type(parent[key])
                    alike = [value for value in VALUES if isinstance(value, own)]
                    kinds = alike if alike and rng.random() < 0.6 else VALUES
                    parent[key] = kinds[int(rng.integers(len(kinds)))]
            except (KeyError, IndexError, TypeError):
                continue
        written = json.dumps(document)
        return (text[:start] + written + text[stop:]).encode("utf-8", "surrogateescape")
    return None


def _token_changed(data: bytes, rng: np.random.Generator, *, same_length: bool = False) -> bytes:
    """Replace a token with another number or word."""
    found = [m.span() for m in re.finditer(rb"[-+0-9.eE]+|[A-Za-z_]+|[^\w\s]", data[: 1 << 16])]
    start, stop = found[int(rng.integers(len(found)))]
    if rng.random() < 0.3:
        other = found[int(rng.integers(len(found)))]
        token = data[slice(*other)]
    else:
        token = TOKENS[int(rng.integers(len(TOKENS)))]
    if same_length:
        token = token.ljust(stop - start)[: stop - start]
    return data[:start] + token + data[stop:]


def _chunk_changed(data: bytes, change: Change, rng: np.random.Generator) -> bytes:
    """Change a PNG chunk and update its checksum."""
    chunks, place = [], 8
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        chunks.append([data[place + 4 : place + 8], data[place + 8 : place + 8 + length]])
        place += 12 + length
    which = chunks[int(rng.integers(len(chunks)))]
    if which[0] == b"IDAT" and rng.random() < 0.5:
        which[1] = zlib.compress(change(zlib.decompress(which[1])))
    elif rng.random() < 0.2:
        names = b"tRNS PLTE gAMA iCCP eXIf pHYs sBIT bKGD acTL tEXt zTXt iTXt cICP IEND".split()
        which[0] = names[int(rng.integers(len(names)))]
    else:
        which[1] = change(which[1] or b"\0")
    made = data[:8]
    for name, content in chunks:
        made += struct.pack(">I", len(content)) + name + content
        made += struct.pack(">I", zlib.crc32(name + content))
    return made


def _tag_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Give TIFF tags another number, type, count or value."""
    order, wide = "<" if data.startswith(b"II") else ">", data[2:3] == b"+" or data[3:4] == b"+"
    place, entry = ("Q", 20) if wide else ("I", 12)
    out = bytearray(data)
    (first,) = struct.unpack_from(order + place, data, 8 if wide else 4)
    (n_tags,) = struct.unpack_from(order + ("Q" if wide else "H"), data, first)
    for _ in range(int(rng.integers(1, 4))):
        at = first + (8 if wide else 2) + entry * int(rng.integers(n_tags))
        what = int(rng.integers(5))
        if what == 0:
            struct.pack_into(order + "H", out, at, int(rng.choice(TAGS)))
        elif what == 1:
            struct.pack_into(order + "H", out, at + 2, int(rng.choice(TAG_KINDS)))
        elif what == 2:
            struct.pack_into(order + place, out, at + 4, int(rng.choice(TAG_COUNTS)))
        else:
            below = (1 << 32) - int(rng.integers(1, 64))  # negative if read as a signed type
            value = below if rng.random() < 0.3 else int(rng.choice(TAG_VALUES))
            struct.pack_into(order + place, out, at + (12 if wide else 8), value)
    return bytes(out)


def _card_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Give a FITS header card another value or name."""
    is_value = re.compile(rb"[A-Z0-9_-]{1,8} *= ").match
    cards = [at for at in range(0, len(data) - 80, 80) if is_value(data[at : at + 80])]
    at = cards[int(rng.integers(1, len(cards)))]
    name = data[at : at + 8].strip()
    if rng.random() < 0.5:
        name = CARDS[int(rng.integers(len(CARDS)))]
    value = CARD_VALUES[int(rng.integers(len(CARD_VALUES)))]
    card = name.ljust(8) + b"= " + value.rjust(20)
    return data[:at] + card.ljust(80)[:80] + data[at + 80 :]
