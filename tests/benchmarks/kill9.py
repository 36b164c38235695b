"""Kill a batch at many random moments; each must end with the bytes of one never killed.

::

    python -m tests.benchmarks.kill9 --runs 50
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.denoise.killing import N_IMAGES, everything, kill_and_resume, make_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        expected = make_inputs(Path(folder))
        for run in range(arguments.runs):
            jobs = 1 + run % 2
            name = f"run{run}"
            n_before, n_resumed = kill_and_resume(
                Path(folder), name, jobs=jobs, seed=arguments.seed + run
            )
            same = everything(Path(folder, name)) == expected
            print(
                f"run {run + 1:3d}, {jobs} workers: {n_before:2d} of {N_IMAGES} done when killed, "
                f"{n_resumed:2d} kept, same bytes: {same}"
            )
            assert same
            assert n_resumed == n_before


if __name__ == "__main__":
    main()
