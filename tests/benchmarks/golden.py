"""Record the package's results in a golden run, and compare a later commit with it.

    python tests/benchmarks/golden.py keep FOLDER       # writes the results to FOLDER/raw
    python tests/benchmarks/golden.py compare FOLDER    # runs again, lists what differs, exit 1

Only the command and public names are used, so that the same script runs on both commits; both runs
need the same machine and libraries. `golden_data` makes tables and images with fixed seeds. A
failing step is recorded as its exit code and error line. Paths of the working folder, version
numbers (except in model files) and clock times are removed; `run.json` is ignored. A run takes two
minutes on two cores, and one more if the loops of denoising must be compiled first. ``--only WORD``
selects the steps with that word in their names.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import re
import runpy
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import tifffile
from golden_data import make_images, make_tables
from golden_steps import COMMANDS, PYTHON
from PIL import Image

import kpca_apps

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
LEFT_OUT = ("run.json",)
SHOWN = 80  # characters shown on each side of a difference
WARM_UP = "denoise run in/grey.png in/mosaic.dng --quality fast --out warm"


def scrub(text: str, work: Path) -> str:
    """Remove text that legitimately differs between runs or versions."""
    for path in {str(work), str(work.resolve())}:
        text = text.replace(path, "WORK")
    lines = [line for line in text.splitlines(True) if not line.startswith("Compiling for this")]
    return "".join(lines).replace(kpca_apps.__version__, "VERSION")


def run_command(line: str, work: Path) -> str:
    """Run ``kpca`` in this process; return its output and exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words, at_interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    sys.argv = ["kpca", *line.split()]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("kpca_apps", run_name="__main__")
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = words
        signal.signal(signal.SIGINT, at_interrupt)
    transcript = f"$ kpca {line}\n{out.getvalue()}--- exit code {code}\n{err.getvalue()}"
    return scrub(transcript, work)


def run_steps(work: Path, only: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Run all steps in a folder; yield reproducible bytes of each result."""
    steps: Mapping[str, str | Callable[[], Mapping[str, Any]]] = {**COMMANDS, **PYTHON}
    for name, step in steps.items():
        if only not in name:
            continue
        Path(name).mkdir()
        results: dict[str, bytes] = {}
        if callable(step):
            try:
                results = {key: serialise(value, work) for key, value in step().items()}
            except Exception as error:  # the exception is the result
                message = "".join(traceback.format_exception_only(error))
                results["error"] = scrub(message, work).encode()
        else:
            words = [run_command(c.replace("@", name), work) for c in step.split(";")]
            results["output"] = "".join(words).encode()
        for path in sorted(Path(name).rglob("*")):
            if path.is_file() and path.name not in LEFT_OUT:
                results[str(path.relative_to(name))] = content(path, work)
        shutil.rmtree(name)
        yield name, results


def serialise(value: Any, work: Path) -> bytes:
    """Serialise a Python result: an array as .npy, a frame as rows, anything else as text."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        file = io.BytesIO()
        np.save(file, value)
        return file.getvalue()
    if isinstance(value, pl.DataFrame):
        rows = "".join(f"{row}\n" for row in value.iter_rows())
        return f"{value.schema}\n{rows}".encode()
    if not isinstance(value, str):
        value = json.dumps(value, indent=1, sort_keys=True, default=str)
    return scrub(value, work).encode()


def content(path: Path, work: Path) -> bytes:
    """Return a file's content: image pixels, table cells, or text without volatile parts."""
    kind = path.suffix.lower()
    if kind in (".tif", ".tiff"):
        return serialise(tifffile.imread(path), work)
    if kind in (".png", ".jpg"):
        with Image.open(path) as image:
            return serialise(np.array(image), work)
    if kind == ".xlsx":
        return serialise("".join(_cells(path)), work)
    if kind == ".parquet":
        return serialise(pl.read_parquet(path), work)
    if kind in (".arrow", ".feather"):
        return serialise(pl.read_ipc(path), work)
    if kind == ".npy":
        return path.read_bytes()
    data = path.read_bytes() if kind != ".gz" else gzip.decompress(path.read_bytes())
    try:
        return scrub(data.decode("utf-8"), work).encode()
    except UnicodeDecodeError:
        return data


def _cells(path: Path) -> Iterator[str]:
    for sheet in openpyxl.load_workbook(path):
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value is not None:
                    colour = cell.fill.start_color.rgb if cell.fill.fill_type else ""
                    yield f"{sheet.title}!{cell.coordinate} {cell.value!r} {colour}\n"


def _array(data: bytes) -> np.ndarray | None:
    return np.load(io.BytesIO(data)) if data.startswith(b"\x93NUMPY") else None


def first_difference(old: bytes, new: bytes) -> str:
    """Describe the first difference of two results; for numbers, the largest difference."""
    arrays = _array(old), _array(new)
    if arrays[0] is not None and arrays[1] is not None:
        return _of_arrays(arrays[0], arrays[1])
    if old.startswith(b"PK") and new.startswith(b"PK"):
        return _compare_archives(old, new)
    try:
        texts = old.decode("utf-8"), new.decode("utf-8")
    except UnicodeDecodeError:
        return f"byte {_first(old, new)} of {len(old)} and {len(new)}"
    by = _numeric_difference(*texts)
    with contextlib.suppress(json.JSONDecodeError):
        return f"{_compare_trees(json.loads(texts[0]), json.loads(texts[1]), '$')}{by}"
    lines = [text.splitlines() for text in texts]
    for number, (a, b) in enumerate(zip(*lines, strict=False), 1):
        if a != b:
            return f"line {number}: {_excerpts(a, b)}{by}"
    return f"{len(lines[0])} lines before, {len(lines[1])} now"


def _of_arrays(old: np.ndarray, new: np.ndarray) -> str:
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{old.dtype}{old.shape} before, {new.dtype}{new.shape} now"
    if old.dtype.kind not in "biuf":
        return f"{np.count_nonzero(old != new)} of {old.size} values differ"
    a, b = old.astype(float), new.astype(float)
    unlike = (a != b) & ~(np.isnan(a) & np.isnan(b))
    place = tuple(int(i) for i in np.argwhere(unlike)[0]) if unlike.any() else ()
    most, scale = np.max(np.abs(a - b)[unlike], initial=0), np.nanmax(np.abs(a), initial=0)
    first = f"first at {place}: {a[place]} -> {b[place]}, " if place else ""
    return f"{first}{unlike.sum()} of {a.size} differ, by at most {most:.3g} of {scale:.3g}"


def _compare_archives(old: bytes, new: bytes) -> str:
    """Name the parts of two model files that differ, and the first difference."""
    parts = []
    for data in (old, new):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts.append({name: archive.read(name) for name in archive.namelist()})
    a, b = parts
    unlike = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    if not unlike:
        return "the same parts, compressed differently"
    first, count = unlike[0], f"{len(unlike)} of {len(b)} parts differ, first {unlike[0]}"
    if first not in a or first not in b:
        return f"{count}, which is {'new' if first in b else 'gone'}"
    return f"{count}: {first_difference(a[first], b[first])}"


def _compare_trees(old: Any, new: Any, path: str) -> str:
    """Return the path and values where two JSON documents first differ; empty if equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new:
                return f"{path}.{key} is {'new' if key in new else 'gone'}"
            if found := _compare_trees(old[key], new[key], f"{path}.{key}"):
                return found
        return "" if list(old) == list(new) else f"{path}: other order of keys"
    if isinstance(old, list) and isinstance(new, list):
        for i, (a, b) in enumerate(zip(old, new, strict=False)):
            if found := _compare_trees(a, b, f"{path}[{i}]"):
                return found
        return "" if len(old) == len(new) else f"{path}: {len(old)} items before, {len(new)} now"
    return "" if repr(old) == repr(new) else f"{path}: {_excerpts(repr(old), repr(new))}"


def _first(old: Sequence[Any], new: Sequence[Any]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))


def _excerpts(old: str, new: str) -> str:
    """Cut two lines to the surroundings of their first difference."""
    at = _first(old, new)
    a, b = (text[max(0, at - SHOWN // 2) : at + SHOWN] for text in (old, new))
    return f"{a!r} -> {b!r}"


def _numeric_difference(old: str, new: str) -> str:
    """Describe the numeric difference of two texts; empty if they differ otherwise."""
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return ""
    a, b = (np.array([float(n) for n in NUMBER.findall(text)]) for text in (old, new))
    with np.errstate(invalid="ignore"):
        relative = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-300)
    return (
        f"; only numbers differ, {np.count_nonzero(a != b)} of {len(a)}, "
        f"by at most {np.max(np.abs(a - b)):.3g}, relatively {np.nanmax(relative):.3g}"
    )


def keep(folder: Path, only: str) -> None:
    """Run all steps and write their results to a folder."""
    os.environ["COLUMNS"] = "80"
    warnings.simplefilter("ignore")  # results list the warnings, so print none
    raw, here = folder.resolve() / "raw", Path.cwd()
    if raw.exists():
        shutil.rmtree(raw)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        os.chdir(work)
        try:
            Path("in").mkdir()
            make_tables(Path("in"))
            make_images(Path("in"))
            run_command(WARM_UP, work)
            before = time.perf_counter()
            for name, results in run_steps(work, only):
                for key, data in results.items():
                    path = raw / name / f"{key}.gz"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(gzip.compress(data, 1, mtime=0))
                now = time.perf_counter()
                print(f"{now - before:5.1f} s  {name}: {len(results)} results", file=sys.stderr)
                before = now
        finally:
            os.chdir(here)


def recorded(folder: Path, only: str) -> dict[str, Path]:
    """Return the files of a recorded run by step and result."""
    raw = folder / "raw"
    paths = {str(path.relative_to(raw)).removesuffix(".gz"): path for path in raw.rglob("*.gz")}
    return {name: paths[name] for name in sorted(paths) if only in Path(name).parts[0]}


def compare(folder: Path, only: str) -> int:
    """Rerun all steps, print differences from the recorded results, and return their number."""
    n_unlike = 0
    with tempfile.TemporaryDirectory() as scratch:
        keep(Path(scratch), only)
        old, new = recorded(folder, only), recorded(Path(scratch), only)
        for name in {**old, **new}:
            if name not in old or name not in new:
                print(f"{name}: {'new' if name in new else 'gone'}")
            else:
                data = [gzip.decompress(files[name].read_bytes()) for files in (old, new)]
                if data[0] == data[1]:
                    continue
                print(f"{name}: {first_difference(*data)}")
            n_unlike += 1
    print(f"{n_unlike} of {len(new)} results differ")
    return n_unlike


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["keep", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="WORD")
    options = parser.parse_args()
    if options.action == "compare":
        return int(compare(options.folder, options.only) > 0)
    options.folder.mkdir(parents=True, exist_ok=True)
    keep(options.folder, options.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
