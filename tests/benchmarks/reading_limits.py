"""Hostile files: seconds, processor time, peak memory, exit code and message of ``kpca novelty``.

::

    python tests/benchmarks/reading_limits.py --folder /var/tmp
    python tests/benchmarks/reading_limits.py --only wide_table,long_cell

Each file is made, screened by a process of its own (bounded to `--memory` GB of address space and
`--seconds`), and removed. The largest has 1 GB. Refusals should name the line, take time linear in
the file and stay under 1 GB of memory; `wide_table` and `more_cells_than_declared` are to be read.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import resource
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from processes import COMMAND

MEGABYTE = 1 << 20

Make = Callable[[Path], None]


def numbers(row: int, width: int) -> bytes:
    return b",".join(b"%.6f" % math.sin(1e4 * (row + 1) * (k + 1)) for k in range(width)) + b"\n"


def wide(width: int, rows: int = 5) -> Make:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(b",".join(b"c%d" % k for k in range(width)) + b"\n")
            file.writelines(numbers(row, width) for row in range(rows))

    return make


def repeated(*pieces: tuple[bytes, int]) -> Make:
    """Write pieces, each so many times."""

    def make(path: Path) -> None:
        with path.open("wb") as file:
            for piece, times in pieces:
                at_once = max(MEGABYTE // len(piece), 1)
                block = piece * at_once
                for _ in range(times // at_once):
                    file.write(block)
                file.write(piece * (times % at_once))

    return make


def many_keys(path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f'{{"k{k}": {k}}}\n' for k in range(400_000))


def many_keys_a_line(path: Path) -> None:
    pairs = ", ".join(f'"k{k}": {k}' for k in range(400_000))
    path.write_text(f"{{{pairs}}}\n" * 5, encoding="utf-8")


def workbook(sheet: Iterator[bytes], shrink: bool = False) -> Make:
    """Write a workbook of one sheet; `shrink` lets its directory declare a thousandth."""

    def make(path: Path) -> None:
        import openpyxl

        empty = io.BytesIO()
        openpyxl.Workbook().save(empty)
        with zipfile.ZipFile(empty) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                if entry.filename != "xl/worksheets/sheet1.xml":
                    new.writestr(entry, old.read(entry))
            with new.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
                for piece in sheet:
                    file.write(piece)
        if shrink:
            # The size stands in the directory and before the entry.
            with zipfile.ZipFile(path) as archive:
                size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
            data = path.read_bytes()
            for width in (4, 8):
                told = (size // 1000).to_bytes(width, "little")
                data = data.replace(size.to_bytes(width, "little"), told)
            path.write_bytes(data)

    return make


def cells(*rows: str, dimension: str = "A1:B2") -> Iterator[bytes]:
    yield (
        '<?xml version="1.0"?><worksheet xmlns='
        '"http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<dimension ref="{dimension}"/><sheetData>'
    ).encode()
    for row in rows:
        yield row.encode()
    yield b"</sheetData></worksheet>"


def cell_rows(start: int, count: int, width: int = 3) -> Iterator[str]:
    for row in range(start, start + count):
        inside = "".join(f'<c r="{chr(65 + k)}{row}"><v>{math.sin(row * (k + 2))}</v></c>'
                         for k in range(width))  # fmt: skip
        yield f'<row r="{row}">{inside}</row>'


def long_text(n_bytes: int) -> Iterator[bytes]:
    *before, end = cells(*cell_rows(1, 5))
    yield from before
    yield b'<row r="6"><c r="A6" t="inlineStr"><is><t>'
    for _ in range(n_bytes // MEGABYTE):
        yield b"x" * MEGABYTE
    yield b"</t></is></c></row>" + end


FILES: dict[str, tuple[str, Make]] = {
    "wide_table": (".csv", wide(5_000)),
    "million_columns": (".csv", wide(1_000_000)),
    "commas_in_a_line": (".csv", repeated((b",", 10**8), (b"\n1\n", 1))),
    "commas_in_lines": (".csv", repeated((b"," * 99_999 + b"\n", 1000))),
    "commas_in_a_late_line": (".csv", repeated((b"a,b\n", 1), (b"1,2\n", 200_000), (b",", 10**8))),
    "long_cell": (".csv", repeated((b"a,b\n1,2\n3,", 1), (b"x", 10**9), (b"\n5,6\n", 1))),
    "long_cell_in_a_long_table": (
        ".csv", repeated((b"a,b\n", 1), (b"1,2\n", 200_000), (b"3,", 1), (b"x", 10**9)),
    ),
    "long_quoted_cell": (".csv", repeated((b'a,b\n1,2\n3,"', 1), (b"x", 10**9), (b'"\n', 1))),
    "open_quote": (".csv", repeated((b'a,b\n1,2\n"3', 1), (b",4\n5", 75_000_000))),
    "open_quote_without_lines": (".csv", repeated((b'a,b\n1,2\n"', 1), (b"x", 300_000_000))),
    "open_quote_of_quotes": (".csv", repeated((b'a,b\n1,2\n"', 1), (b'""\n', 100_000_000))),
    "equal_names": (".csv", repeated((b"x,", 199_999), (b"x\n", 1), (b"1," * 199_999 + b"1\n", 5))),
    "many_keys": (".jsonl", many_keys),
    "many_keys_a_line": (".jsonl", many_keys_a_line),
    "long_json_line": (".jsonl", repeated((b'{"a": "', 1), (b"x", 500_000_000), (b'"}\n', 1))),
    "workbook_unpacks_to_more": (".xlsx", workbook(long_text(2 << 30), shrink=True)),
    "more_cells_than_declared": (".xlsx", workbook(cells(*cell_rows(1, 100)))),
    "cells_at_both_ends": (
        ".xlsx",
        workbook(cells(*cell_rows(1, 5), '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')),
    ),
}  # fmt: skip


def screen(path: Path, out: Path, memory: int, seconds: float) -> tuple[str, str]:
    """Run the command; return its figures, and the last line it said."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    before = perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "novelty", "screen", str(path), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=bound,
    )
    late = False
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = True
        process.kill()
        _, said = process.communicate()
    wall = perf_counter() - before
    lines = said.decode("utf-8", "replace").split("\n")
    errors = [line for line in lines if line.startswith("error")] or [lines[-1] or lines[0]]
    code = "late" if late else str(process.returncode)
    return f"{wall:7.1f} {code:>5}", re.sub(r"\S*/", "", errors[-1])[:150]


def measured(path: Path, out: Path, memory: int, seconds: float) -> str:
    """Run it in a process whose only child it is, so that its resources can be told."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        figures, message = screen(path, out, memory, seconds)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = (
            f"{figures} {used.ru_utime + used.ru_stime:7.1f} {used.ru_maxrss / MEGABYTE:7.2f}  "
            f"{message}"
        )
        os.write(writing, line.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        line = file.read().decode()
    os.waitpid(child, 0)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", default=",".join(FILES), help="names, cut at commas")
    parser.add_argument("--memory", type=float, default=7.0, help="GB of address space")
    parser.add_argument("--seconds", type=float, default=400.0)
    arguments = parser.parse_args()
    print(f"{'file':26} {'seconds':>7} {'exit':>5} {'CPU s':>7} {'GB':>7}  said", flush=True)
    for name in arguments.only.split(","):
        suffix, make = FILES[name]
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder, name + suffix)
            make(path)
            line = measured(
                path, Path(folder, "out"), int(arguments.memory * 2**30), arguments.seconds
            )
            print(f"{name:26} {line}", flush=True)


if __name__ == "__main__":
    main()
