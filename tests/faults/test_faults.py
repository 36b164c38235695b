"""A sample of the disturbances that ``python -m tests.benchmarks.faults`` applies to commands."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.release


@pytest.mark.parametrize(
    ("fault", "only"),
    [
        ("kill", "SQLite query"),
        ("kill", "denoise images in processes"),
        ("kill", "OME-Zarr, replacing"),
        ("signals", "^(score|denoise noise)$"),
        ("disk", "each"),
        ("disk", "denoise stacks"),
        ("memory", "rules"),
        ("twice", "fit, replacing"),
        ("twice", "denoise images$"),
        ("clock", "fit, replacing"),
    ],
)
def test_nothing_is_lost(fault: str, only: str) -> None:
    if sys.platform != "linux":
        pytest.skip("processes are forked, killed and bounded as on Linux")
    if fault == "disk":
        apart = ["unshare", "-rm", "true"]
        if shutil.which("unshare") is None or subprocess.run(apart, check=False).returncode:
            pytest.skip("this user may not mount a disk in a namespace of his own")
    for module in ("duckdb", "zarr", "tifffile"):
        pytest.importorskip(module)
    words = ["tests.benchmarks.faults", fault, "--times", "4", "--only", only]
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
