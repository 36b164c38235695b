"""Damage model files in many ways; each must be refused in one line, or work.

Novelty models with a Tikhonov filter, with truncation and a dictionary are damaged by flipped
bytes, by a cut, and by edits of the parts of the zip, of the JSON and of the arrays and their
headers, put together again as a sound zip. What loads must score a small table, or denoise a small
image. Each worker process may take 4 GB of memory, and is killed after 60 s with one file.

::

    python -m tests.benchmarks.mutated_models --files 5000
"""

from __future__ import annotations

import argparse
import io
import json
import os
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.errors import KpcaError, ModelFileError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.novelty.screening.run import explain_row, score
from tests.benchmarks.processes import tried_each
from tests.novelty.screening.test_hostile_models import HOSTILE, mixed

KINDS = ("soft", "hard", "groups", "dictionary")
OUTCOMES = ("refused", "loaded", "no score", "tracebacks", "killed", "above 1 GB", "over 20 s")
MEMORY, LARGE, SLOW, PATIENCE = 4 << 30, 1 << 30, 20.0, 60.0
NUMBERS = (0.0, -1.0, 1.0, 1e-320, 1e100, 1e155, 1e308, -1e308, np.inf, -np.inf, np.nan)
WHOLE = (0, -1, 1, 2, 7, 10**6, 2**31, 2**53, 2**63 - 1, -(2**63))
DTYPES = ("<f4", ">f8", "<i8", "|b1", "|O", "<c16", "<U8", "<M8[ns]", "|V8", "[('a', '<f8')]")

Parts = dict[str, bytes]


def parts_of(data: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def joined(parts: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in parts:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 9)):
        damaged[place] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    keep = int(rng.integers(len(data)))
    return data[:keep] if rng.random() < 0.7 else data[:keep] + data[keep + keep // 9 :]


def members_edited(data: bytes, rng: np.random.Generator) -> bytes:
    parts = list(parts_of(data).items())
    at, other = (int(i) for i in rng.integers(len(parts), size=2))
    name, content = parts[at]
    edit = int(rng.integers(7))
    if edit == 0:
        del parts[at]
    elif edit == 1:
        parts.append((name, parts[other][1]))
    elif edit == 2:
        parts[at] = (f"{name}x", content)
    elif edit == 3:
        parts[at], parts[other] = (name, parts[other][1]), (parts[other][0], content)
    elif edit == 4:
        parts[at] = (name, b"" if rng.random() < 0.5 else content[: rng.integers(len(content))])
    elif edit == 5:
        parts.append(("../../etc/more.npy", content))
    else:
        return joined(parts, zipfile.ZIP_DEFLATED)
    return joined(parts)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(value) if isinstance(value, dict) else []
    keys = list(range(len(value))) if isinstance(value, list) else keys
    return [(*path, key) for key in keys] + [
        place for key in keys for place in places(value[key], (*path, key))
    ]


def json_edited(data: bytes, rng: np.random.Generator) -> bytes:
    parts = parts_of(data)
    document = json.loads(parts["model.json"])
    for _ in range(int(rng.integers(1, 3))):
        found = places(document)
        *path, key = found[int(rng.integers(len(found)))]
        parent = document
        for step in path:
            parent = parent[step]
        edit, value = rng.random(), parent[key]
        if edit < 0.15:
            del parent[key]
        elif edit < 0.25 and isinstance(parent, dict):
            parent["more"] = value
        elif edit < 0.4 and isinstance(value, str):
            words = [p for q in found if isinstance(p := _at(document, q), str)]
            parent[key] = words[int(rng.integers(len(words)))]
        elif edit < 0.6 and isinstance(value, int | float):
            parent[key] = [*NUMBERS, *WHOLE][int(rng.integers(len(NUMBERS) + len(WHOLE)))]
        else:
            parent[key] = HOSTILE[int(rng.integers(len(HOSTILE)))]
    parts["model.json"] = json.dumps(document).encode()
    return joined(list(parts.items()))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def json_text_edited(data: bytes, rng: np.random.Generator) -> bytes:
    parts = parts_of(data)
    parts["model.json"] = flipped(parts["model.json"], rng)
    return joined(list(parts.items()))


def header_edited(data: bytes, rng: np.random.Generator) -> bytes:
    parts = parts_of(data)
    name = sorted(set(parts) - {"model.json"})[int(rng.integers(len(parts) - 1))]
    array = np.load(io.BytesIO(parts[name]))
    shape: tuple[int, ...] = array.shape
    described, fortran, content = array.dtype.str, False, array.tobytes()
    edit = int(rng.integers(6))
    if edit == 0:
        at = int(rng.integers(len(shape)))
        size = [*WHOLE, shape[at] + 1, shape[at] - 1][int(rng.integers(len(WHOLE) + 2))]
        shape = (*shape[:at], size, *shape[at + 1 :])
    elif edit == 1:
        described = DTYPES[int(rng.integers(len(DTYPES)))]
    elif edit == 2:
        fortran = True
    elif edit == 3:
        shape = shape[::-1] if len(shape) > 1 else (1, *shape)
    elif edit == 4:  # other lengths, and bytes enough for them
        shape = tuple(int(rng.integers(0, 2 * n + 2)) for n in shape)
        content = np.resize(array, shape).tobytes() if array.size else b""
    header = f"{{'descr': '{described}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"
    packed = header.encode()
    length = len(packed).to_bytes(2, "little")
    if edit == 5:
        length, packed = rng.bytes(2), flipped(packed, rng)
    parts[name] = b"\x93NUMPY\x01\x00" + length + packed + content
    return joined(list(parts.items()))


def values_edited(data: bytes, rng: np.random.Generator) -> bytes:
    parts = parts_of(data)
    name = sorted(set(parts) - {"model.json"})[int(rng.integers(len(parts) - 1))]
    array = np.load(io.BytesIO(parts[name])).copy()
    values = NUMBERS if array.dtype.kind == "f" else WHOLE
    value = values[int(rng.integers(len(values)))]
    edit = rng.random()
    if array.size and edit < 0.5:
        array.flat[rng.integers(array.size)] = value
    elif edit < 0.7:
        array[...] = value
    elif edit < 0.85:
        array = rng.permutation(array.ravel()).reshape(array.shape)
    else:
        with np.errstate(over="ignore"):
            array = (array * rng.choice([-1.0, 1e-200, 1e3, 1e200])).astype(array.dtype)
    buffer = io.BytesIO()
    np.save(buffer, array)
    parts[name] = buffer.getvalue()
    return joined(list(parts.items()))


EDITS: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "bytes flipped": flipped,
    "cut short": cut,
    "parts of the zip": members_edited,
    "values of the JSON": json_edited,
    "text of the JSON": json_text_edited,
    "headers of arrays": header_edited,
    "values of arrays": values_edited,
}


def make_models(folder: Path) -> None:
    warnings.simplefilter("ignore")
    table = mixed(24)
    save_model(fit_table(table)[0], folder / "soft")
    save_model(fit_table(table, ScreeningOptions(method="hoffmann"))[0], folder / "hard")
    by = ScreeningOptions(columns=ColumnOptions(by=("colour",)))
    save_model(fit_table(mixed(120), by)[0], folder / "groups")
    images = np.random.default_rng(0).random((40, 5, 5))
    DictionaryDenoiser(sigma=0.1).fit(images).save(folder / "dictionary")


def damaged(folder: Path, seed: int, number: int) -> tuple[str, str, bytes]:
    kind, edit = KINDS[number % len(KINDS)], list(EDITS)[number % len(EDITS)]
    rng = np.random.default_rng([seed, number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind, edit, EDITS[edit]((folder / kind).read_bytes(), rng)


def tried(kind: str, path: Path, table: Any) -> str:
    """Load a file and use the model: an outcome, or the traceback."""
    try:
        if kind == "dictionary":
            DictionaryDenoiser.load(path).denoise(np.full((5, 5), 0.5))
            return "loaded"
        model = load_model(path)
        result = score(model, table)
        explain_row(model, table, row="1")
        return "loaded" if np.isfinite(result.scores).all() else "scores that are no numbers"
    except ModelFileError as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 400 else repr(error)
    except KpcaError:
        return "no score"  # it was loaded, and then said in one line why it scores nothing
    except BaseException:
        return traceback.format_exc()


def prepared(folder: Path, seed: int) -> Callable[[int], str]:
    """Return what makes the damaged file of a number, and says what became of it."""
    warnings.simplefilter("ignore")
    table, path = mixed(24), folder / f"damaged {os.getpid()}"

    def tried_number(number: int) -> str:
        kind, _, data = damaged(folder, seed, number)
        path.write_bytes(data)
        return tried(kind, path, table)

    return tried_number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*EDITS, "all")}
    shown: set[str] = set()
    longest, largest = 0.0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_models(folder)
        ready = partial(prepared, folder, arguments.seed)
        for number, one in enumerate(tried_each(ready, range(arguments.files), MEMORY, PATIENCE)):
            longest, largest = max(longest, one.seconds), max(largest, one.peak_bytes)
            outcome = "killed" if one.outcome == "late" else one.outcome
            if outcome not in OUTCOMES:
                if outcome not in shown:
                    print(f"file {number}:\n{outcome}")
                    shown.add(outcome)
                outcome = "tracebacks"
            for row in (counts[list(EDITS)[number % len(EDITS)]], counts["all"]):
                row["files"] += 1
                row[outcome] += 1
                row["above 1 GB"] += one.peak_bytes > LARGE
                row["over 20 s"] += one.seconds > SLOW
    columns = ("files", *OUTCOMES)
    print(f"{'damage':20}" + "".join(f"{column:>12}" for column in columns))
    for name, row in counts.items():
        print(f"{name:20}" + "".join(f"{row[column]:12,}" for column in columns))
    print(f"longest {longest:.1f} s, largest {largest / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
