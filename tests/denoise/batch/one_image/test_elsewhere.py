"""An image sent as bytes gives the same result as the image's file; no files remain."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from kpca_apps.denoise.batch.denoisers import PageDenoiser
from kpca_apps.denoise.batch.inputs import plan_outputs
from kpca_apps.denoise.batch.one_image.elsewhere import done_here, received, sent, work_on_sent
from kpca_apps.denoise.batch.one_image.work import Done, Run, Task, work
from kpca_apps.errors import InputError
from tests.denoise.toy import SETTINGS, picture, save, smooth


@pytest.fixture
def run(tmp_path: Path) -> Run:
    save(tmp_path / "in", "sub/a.png", picture(0))
    save(tmp_path / "clean", "a.png", picture(1))
    (tmp_path / "out").mkdir()
    return Run(PageDenoiser(smooth), tmp_path / "out", "same", SETTINGS, tmp_path / "board", ())


@pytest.fixture
def task(run: Run, tmp_path: Path) -> Task:
    (planned,), _ = plan_outputs([tmp_path / "in"], run.folder)
    return Task(planned, 1, tmp_path / "clean" / "a.png")


def finished(done: Done) -> tuple[Done, dict[Path, bytes]]:
    """Return the record of a finished image, without the time, and the result's files."""
    assert done.partial is not None
    outcome, place = replace(done.outcome, seconds=0.0), done.partial
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    result = {file.relative_to(place): file.read_bytes() for file in files}
    return replace(done, outcome=outcome, partial=None), result


def test_bytes_and_file_give_the_same_result(run: Run, task: Task, temporary: Path) -> None:
    assert done_here(task, run) is None
    there = received(work_on_sent(sent(task, run), run), run)
    here = work(task, run)
    assert finished(there) == finished(here)
    assert here.partial is not None and there.partial is not None
    assert there.partial.parent == here.partial.parent == run.folder / "sub"
    assert list(temporary.iterdir()) == []
    # If the result exists, only data missing from its record is computed again.
    here.partial.rename(run.folder / "sub" / "a.png")
    again = work_on_sent(sent(replace(task, earlier=replace(here, partial=None)), run), run)
    assert again.result == {} and again.done.outcome.resumed
    assert again.done.outcome.previews == here.outcome.previews


def test_an_image_that_is_a_folder_is_sent_as_a_whole(
    run: Run, tmp_path: Path, temporary: Path
) -> None:
    zarr = pytest.importorskip("zarr")
    folder = tmp_path / "in" / "sub" / "b.zarr"
    group = zarr.open_group(str(folder), mode="w", zarr_format=3)
    pixels = picture(2)
    group.create_array("0", shape=pixels.shape, dtype=pixels.dtype, chunks=(16, 16))[:] = pixels
    axes = [{"name": name, "type": "space"} for name in "yx"]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    planned = next(
        item for item in plan_outputs([tmp_path / "in"], run.folder)[0] if item.name == "sub/b.zarr"
    )
    task = Task(planned, 2, None)
    assert done_here(task, run) is None
    there = received(work_on_sent(sent(task, run), run), run)
    assert there.outcome.status == "ok", there.outcome.reason
    assert finished(there) == finished(work(task, run))
    assert list(temporary.iterdir()) == []


def test_a_non_file_is_reported_here_and_a_missing_file_by_the_worker(run: Run, task: Task) -> None:
    gathered = sent(task, run)
    task.planned.source.unlink()
    refused = done_here(task, run)
    assert refused is not None
    assert (refused.done.outcome.status, refused.result) == ("failed", {})
    assert "no such file" in refused.done.outcome.reason
    missed = work_on_sent(replace(gathered, image={}), run)
    assert missed.done.outcome.reason == refused.done.outcome.reason


def test_a_worker_without_a_folder_to_work_in_ends_the_batch(
    run: Run, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", os.devnull)
    with pytest.raises(InputError, match="cannot write to its folder for temporary files"):
        work_on_sent(sent(task, run), run)


def test_an_image_too_large_to_be_sent_fails_alone(
    run: Run, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.system.limits.available_memory", lambda: 1000)
    returned = done_here(task, run)
    assert returned is not None and returned.done.outcome.status == "failed"
    assert "memory" in returned.done.outcome.reason
