"""How many functions and files of ours a reader meets on four walks, counted by a profiler.

::

    python tests/benchmarks/walks.py
    python tests/benchmarks/walks.py --list

The walks: a CSV file of 200 rows to typed columns; ``screen_table`` to its scores, when
``fit_detector`` returns; 50 new rows scored by a fitted detector; ``denoise_kpca`` on a small
image, before compiled code. A function is counted once however often it is called;
properties count, for a reader follows them as well, and comprehensions and lambdas belong to the
function they stand in. ``--list`` names them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

PACKAGE = str(ROOT / "kpca_apps")
NESTED = re.compile(r"(\.<locals>)?\.?<(listcomp|genexpr|dictcomp|setcomp|lambda)>")


def met(work: Callable[[], Any]) -> set[tuple[str, str]]:
    """File and name of each function of the package that some work calls."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            name = NESTED.sub("", code.co_qualname)
            found.add((code.co_filename.removeprefix(PACKAGE + "/"), name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def small_csv(folder: Path) -> Path:
    """Numbers, a category and a date."""
    rng = np.random.default_rng(0)
    rows = ["weight,height,sex,day"]
    for k in range(200):
        weight, height = rng.normal(size=2)
        rows.append(f"{weight:.3f},{height:.3f},{'fm'[k % 2]},2020-01-{k % 28 + 1:02}")
    path = folder / "small.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def typed_columns(path: Path) -> None:
    """Read a file and every column of it by its format."""
    from kpca_apps import read_table
    from kpca_apps.tables.values import Column, DateFormat, NumberFormat

    frame = read_table(path).frame
    for name in ("weight", "height"):
        Column(frame[name]).read(NumberFormat())
    Column(frame["day"]).read(DateFormat())
    len(Column(frame["sex"]).levels.texts)


class _Scored(BaseException):
    """The table has its scores."""


def scores_of_table(path: Path) -> None:
    """Screen a table up to its scores."""
    from kpca_apps import screen_table
    from kpca_apps.novelty.screening import fit

    fit_detector = fit.fit_detector

    def fit_and_stop(*given: Any, **options: Any) -> None:
        fit_detector(*given, **options)
        raise _Scored

    fit.fit_detector = fit_and_stop
    try:
        screen_table(path)
    except _Scored:
        return
    finally:
        fit.fit_detector = fit_detector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the functions")
    arguments = parser.parse_args()
    from kpca_apps import KernelPCANovelty, denoise_kpca

    rng = np.random.default_rng(0)
    fitted = KernelPCANovelty().fit(rng.normal(size=(300, 4)))
    noisy = rng.normal(128, 20, size=(32, 32)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = small_csv(Path(folder))
        walks: dict[str, Callable[[], Any]] = {
            "path to typed columns": lambda: typed_columns(path),
            "screen_table to its scores": lambda: scores_of_table(path),
            "50 new rows scored": lambda: fitted.score_samples(rng.normal(size=(50, 4))),
            "denoise_kpca": lambda: denoise_kpca(noisy, sigma=20.0, data_range=255),
        }
        for name, work in walks.items():
            work()  # what is prepared once, and imported late, is not met again
            functions = met(work)
            files = {file for file, _ in functions}
            print(f"{name:26} {len(functions):4} functions in {len(files):3} files")
            if arguments.list:
                for file, function in sorted(functions):
                    print(f"    {file}: {function}")


if __name__ == "__main__":
    main()
