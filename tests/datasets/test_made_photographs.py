"""The photographs in `datasets/` match their script and notes."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage.io import imread

NAMES = ("astronaut.png", "camera.png", "chelsea.tif", "coffee.jpg", "text.png")


SCRIPT = Path(__file__).resolve().parents[2] / "datasets" / "make_photographs.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def made(script: dict[str, Any]) -> dict[str, np.ndarray]:
    return script["pictures"]()


def test_script_makes_every_picture_there_is(datasets: Path, made: dict[str, np.ndarray]) -> None:
    folder = datasets / "photographs"
    assert {path.relative_to(folder).as_posix() for path in folder.glob("*/*")} == set(made)
    assert {name.removeprefix("noisy/") for name in made if name.startswith("noisy/")} == set(NAMES)


def test_stored_pixels_are_those_the_script_makes(
    datasets: Path, tmp_path: Path, script: dict[str, Any], made: dict[str, np.ndarray]
) -> None:
    for name, pixels in made.items():
        stored = imread(datasets / "photographs" / name)
        if name.endswith(".jpg"):
            # JPEG is lossy, and its result varies slightly between library versions.
            script["write"](tmp_path / "again.jpg", pixels)
            again = imread(tmp_path / "again.jpg").astype(float)
            assert np.mean(np.abs(stored - again)) < 0.5, name
        else:
            assert stored.dtype == pixels.dtype, name
            assert np.array_equal(stored, pixels), name


def test_notes_tell_the_size_of_every_picture(datasets: Path, made: dict[str, np.ndarray]) -> None:
    notes = (datasets / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        height, width, *_ = made[f"noisy/{name}"].shape
        assert f"| `{name}` | {width} x {height} |" in notes
    assert sum(path.stat().st_size for path in (datasets / "photographs").rglob("*.*")) < 1_000_000
