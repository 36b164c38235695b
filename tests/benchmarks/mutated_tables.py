"""Damaged tables by the thousand: each is read, or refused in one line, in bounded time and memory.

Run ``python -m tests.benchmarks.mutated_tables`` for 5,000 files of each kind, ``--files`` for
fewer. A file is a small sound one with bytes flipped, written over, cut out, doubled or inserted,
always the same for its number. Files are read in worker processes whose memory is bounded; one
that a file ends is counted and replaced. What was found is printed, with the numbers of the files
that did anything but be read or refused.
"""

from __future__ import annotations

import argparse
import bz2
import datetime
import gzip
import io
import json
import lzma
import random
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import polars as pl

from kpca_apps.errors import KpcaError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable
from tests.benchmarks.processes import tried_each

SECONDS = 20
MOST_BYTES = 1 << 30
# Address space, of which stacks of threads and arenas take more than is ever used.
ADDRESS_SPACE = 8 << 30


def rows(n_rows: int = 40) -> pl.DataFrame:
    """Return a table of every type."""
    rng = random.Random(0)
    day = datetime.date(2024, 1, 1)
    return pl.DataFrame(
        {
            "x": [round(rng.gauss(0, 10), 3) for _ in range(n_rows)],
            "n": [rng.randrange(100) for _ in range(n_rows)],
            "flag": [rng.random() < 0.5 for _ in range(n_rows)],
            "kind": [rng.choice(["red", "green", 'say "hi",\nand go', ""]) for _ in range(n_rows)],
            "day": [day + datetime.timedelta(days=k) for k in range(n_rows)],
            "at": [datetime.datetime(2024, 1, 1, 12, k % 60) for k in range(n_rows)],
        }
    )


def csv_file(rng: random.Random) -> bytes:
    """Write delimited text in one of several ways."""
    buffer = io.BytesIO()
    rows().write_csv(buffer, separator=rng.choice(",;\t|"))
    text = buffer.getvalue().decode("utf-8").replace("\n", rng.choice(["\n", "\n", "\r\n", "\r"]))
    data = text.encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return gzip.compress(data, mtime=0) if rng.random() < 0.2 else data


def json_file(rng: random.Random) -> bytes:
    """Write JSON lines, some values nested."""
    records = [json.loads(line) for line in rows().write_ndjson().splitlines()]
    for number, record in enumerate(records):
        if number % 7 == rng.randrange(7):
            record["more"] = {"a": [1, None, {"b": "c"}]}
    return "".join(json.dumps(record) + "\n" for record in records).encode("utf-8")


def parquet_file(rng: random.Random) -> bytes:
    """Write Parquet with one of several packings, nested columns too."""
    buffer = io.BytesIO()
    frame = rows(rng.choice([3, 40, 400])).with_columns(
        pl.col("kind").cast(pl.Categorical).alias("category"),
        pl.concat_list("n", "n").alias("list"),
        pl.struct("x", "kind").alias("struct"),
    )
    packing = rng.choice(["uncompressed", "snappy", "zstd", "lz4", "gzip"])
    if rng.random() < 0.5:
        frame.write_parquet(buffer, compression=packing, row_group_size=rng.choice([7, 1000]))
    else:
        import pyarrow.parquet as pq

        version = rng.choice(["1.0", "2.0"])
        pq.write_table(
            frame.to_arrow(),
            buffer,
            compression="none" if packing == "uncompressed" else packing,
            data_page_version=version,
            use_dictionary=rng.random() < 0.5,
        )
    return buffer.getvalue()


def list_file(rng: random.Random) -> bytes:
    """Write one JSON document, a list of records or one under a key."""
    records = [json.loads(line) for line in rows().write_ndjson().splitlines()]
    document = records if rng.random() < 0.5 else {"n": 40, "data": records, "next": None}
    return json.dumps(document, indent=rng.choice([None, 1])).encode("utf-8")


def arrow_file(rng: random.Random) -> bytes:
    """Write an Arrow file or stream, packed or not, nested columns and dictionaries too."""
    import pyarrow as pa

    frame = rows(rng.choice([3, 40, 400])).with_columns(
        pl.col("kind").cast(pl.Categorical).alias("category"),
        pl.concat_list("n", "n").alias("list"),
        pl.struct("x", "kind").alias("struct"),
    )
    oldest = rng.random() < 0.5
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest() if oldest else None)
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
    write = pa.ipc.new_file if rng.random() < 0.5 else pa.ipc.new_stream
    with write(buffer, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rng.choice([7, 1000]))
    return buffer.getvalue()


def packed_file(rng: random.Random) -> bytes:
    """Write a text in a zip archive, or packed in another way."""
    data, packing = csv_file(rng), rng.randrange(5)
    if packing == 0:
        return bz2.compress(data)
    if packing == 1:
        return lzma.compress(data)
    if packing == 2:
        import pyarrow as pa

        return bytes(pa.compress(data, "zstd", asbytes=True))
    buffer = io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/table.csv", data)
    return buffer.getvalue()


def excel_file(rng: random.Random) -> bytes:
    """Write a workbook; now and then one that is not packed, so that its parts are hit."""
    book = openpyxl.Workbook()
    book.active.append(rows().columns)
    for row in rows().iter_rows():
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    if rng.random() < 0.5:
        return buffer.getvalue()
    unpacked = io.BytesIO()
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(unpacked, "w") as stored:
        for name in archive.namelist():
            data = archive.read(name)
            stored.writestr(name, mutated(data, rng) if "sheet1" in name else data)
    return unpacked.getvalue()


KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "csv": csv_file, "jsonl": json_file, "parquet": parquet_file, "xlsx": excel_file,
    "json": list_file, "arrow": arrow_file, "packed": packed_file,
}  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Damage a file in a few places."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        place = rng.randrange(len(out)) if out else 0
        # Ends of files hold what the rest is read by.
        if rng.random() < 0.3:
            place = max(len(out) - 1 - rng.randrange(min(200, len(out) or 1)), 0)
        length = rng.choice([1, 1, 2, 4, 8, 64])
        what = rng.randrange(6)
        if what == 0 and out:
            out[place] ^= 1 << rng.randrange(8)
        elif what == 1:
            out[place : place + length] = rng.randbytes(length)
        elif what == 2:
            del out[place : place + length * rng.choice([1, 10])]
        elif what == 3:
            out[place:place] = out[place : place + length * 4]
        elif what == 4:
            out[place : place + length] = rng.choice([b"\xff", b"\0", b"\x7f", b'"']) * length
        else:
            out[place:place] = rng.choice([b'"', b"\n", b",", b"\r", b"\0", b"{", b"<", b"9" * 9])
    return bytes(out)


def read(path: Path) -> str:
    """Read a file at once and in parts; return what came of it."""
    try:
        read_table(path)
        table = open_table(path, in_memory_rows=5, part_rows=16)
        if isinstance(table, PartedTable):
            for part in table.parts:
                part.read()
    except KpcaError as error:
        return "refused" if str(error).isprintable() else f"not one line: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "read"


def prepared() -> Callable[[Path], str]:
    """Return what reads a file."""
    return read


def main() -> None:
    """Read all files of all kinds and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    options = parser.parse_args()
    print("| kind | files | refused | read | tracebacks | killed | above 1 GB | over 20 s |")
    print("|---|---|---|---|---|---|---|---|")
    odd: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            counts: Counter[str] = Counter()
            path = Path(folder, f"damaged.{kind}")

            def written(kind: str = kind, path: Path = path) -> Iterator[Path]:
                for number in range(options.first, options.first + options.files):
                    rng = random.Random(f"{kind} {number}")
                    path.write_bytes(mutated(KINDS[kind](rng), rng))
                    yield path

            tries = tried_each(prepared, written(), ADDRESS_SPACE, 6 * SECONDS)
            for number, one in enumerate(tries, options.first):
                found = "killed" if one.outcome == "late" else one.outcome
                counts["slow"] += one.seconds > SECONDS
                counts["large"] += one.peak_bytes > MOST_BYTES
                if one.seconds > SECONDS or one.peak_bytes > MOST_BYTES:
                    odd.append(f"{kind} {number}: {one.seconds:.0f} s, {one.peak_bytes >> 20} MB")
                if found not in ("read", "refused"):
                    odd.append(f"{kind} {number}: {found}")
                    found = "killed" if found == "killed" else "tracebacks"
                counts[found] += 1
            shown = ("refused", "read", "tracebacks", "killed", "large", "slow")
            print(
                f"| {kind} | {options.files} | " + " | ".join(str(counts[c]) for c in shown) + " |"
            )
    print("\n".join(["", *odd]))


if __name__ == "__main__":
    main()
