"""Images and results in an object store: the same bytes as on disk, and no repeated work."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kpca_apps.denoise.batch.inputs import plan_outputs
from kpca_apps.denoise.batch.manifest import MANIFEST, RECORDS
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.system.stores import output
from kpca_apps.system.stores.buckets import Place, place_of
from kpca_apps.system.stores.output import output_folder
from kpca_apps.system.workers import Workers
from tests.denoise.toy import SETTINGS, Info, contents, picture, save, smooth
from tests.stores import BUCKET, google_store, held

release = pytest.mark.release
NAMES = ["a.png", "sub/b.png", "sub/deep/c.png"]


@pytest.fixture
def folder(tmp_path: Path, store: Any) -> Path:
    """A folder with images, and a bucket with copies of them."""
    for seed, name in enumerate(NAMES):
        save(tmp_path / "in", name, picture(seed))
    save(tmp_path / "clean", "a.png", picture(9))
    (tmp_path / "in" / "readme.txt").write_text("not an image")
    for item in store.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        store.delete_object(Bucket=BUCKET, Key=item["Key"])
    put(store, tmp_path, "in", "clean")
    return tmp_path


def put(store: Any, place: Path, *folders: str) -> None:
    for folder in folders:
        for path in (place / folder).rglob("*"):
            if path.is_file():
                store.upload_file(str(path), BUCKET, path.relative_to(place).as_posix())


def run(source: object, out: object, **options: Any) -> DenoisingResult:
    given: dict[str, Any] = {"denoise": smooth, "settings": SETTINGS} | options
    return run_batch([str(source)], str(out), **given)


def never(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
    raise AssertionError("denoised again")


IN, OUT = f"s3://{BUCKET}/in", f"s3://{BUCKET}/out"


def test_a_batch_from_a_bucket_resumes_here(
    folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(IN, folder / "out").n_failed == 0
    before, chunks, fetched = contents(folder / "out"), Place.chunks, list[str]()

    def counted(place: Place) -> Iterator[bytes]:
        fetched.append(place.address.removeprefix(f"{IN}/"))
        if place.address.endswith("sub/b.png"):
            raise InputError("access is denied (403).", place.address)
        yield from chunks(place)

    save(folder / "in", "sub/deep/c.png", picture(7))
    put(store, folder, "in")
    monkeypatch.setattr(Place, "chunks", counted)
    again = run(IN, folder / "out", denoise=never)
    # Each object is fetched once; a denied or changed object fails alone.
    assert fetched == NAMES
    assert [image.status for image in again.images] == ["ok", "failed", "failed"]
    assert again.n_resumed == 1 and "access is denied (403)" in again.images[1].reason
    assert "was made from another input" in again.images[2].reason
    assert contents(folder / "out") == before
    monkeypatch.undo()
    assert run(IN, folder / "out", force=True).n_resumed == 2
    assert contents(folder / "out")["sub/deep/c.png"] != before["sub/deep/c.png"]


@release
def test_a_bucket_behaves_like_a_folder(folder: Path, store: Any) -> None:
    here = run(folder / "in", folder / "out", reference=folder / "clean")
    record = (folder / "out" / MANIFEST).read_bytes()
    assert run(IN, folder / "fetched", reference=f"s3://{BUCKET}/clean") == here
    assert contents(folder / "fetched") == contents(folder / "out")
    assert run(IN, OUT, reference=f"s3://{BUCKET}/clean", jobs=2) == here
    assert held(store) == contents(folder / "out") | {MANIFEST: record}
    again = run(folder / "in", OUT, denoise=never, reference=folder / "clean")
    assert (again, again.n_resumed) == (here, 3)
    assert held(store)[MANIFEST] == record
    # Results in the same bucket are not inputs.
    assert run(f"s3://{BUCKET}", f"s3://{BUCKET}/out").images[0].name == "clean/a.png"


@release
def test_workers_of_a_cluster_read_and_write_the_bucket_themselves(
    folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run(folder / "in", folder / "out")
    with Workers("dask", n_workers=2) as workers:
        workers.map_partitions(len, ["x"])
        # No image bytes pass through the command's process.
        for name in ("upload", "chunks"):
            monkeypatch.setattr(Place, name, lambda *_: pytest.fail("read or written here"))
        assert run(IN, OUT, workers=workers) == here
        monkeypatch.undo()
        assert {name: data for name, data in held(store).items() if name != MANIFEST} == contents(
            folder / "out"
        )
        assert run(IN, folder / "here", workers=workers) == here
        assert contents(folder / "here") == contents(folder / "out")
    assert run(folder / "in", OUT, denoise=never).n_resumed == 3


@release
def test_a_batch_that_was_killed_goes_on(
    folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run(folder / "in", folder / "out")
    upload = Place.upload

    class KilledError(BaseException):
        pass

    def killed_at(end: str, before: bool, place: Place, path: Path) -> None:
        is_it = place.address.endswith(end)
        if not (is_it and before):
            upload(place, path)
        if is_it:
            raise KilledError

    for name, before, left in (("sub/b.png", True, {"a.png"}), ("c.png", False, {*NAMES})):
        with monkeypatch.context() as patched, pytest.raises(KilledError):
            killed = partial(killed_at, name, before)
            patched.setattr(Place, "upload", lambda place, path, killed=killed: killed(place, path))
            run(IN, OUT)
        assert {name for name in held(store) if not name.startswith(RECORDS)} == left
    assert (run(IN, OUT, denoise=never).n_resumed, MANIFEST in held(store)) == (3, True)
    assert {name for name in held(store) if name.startswith(RECORDS)} == set()
    assert contents(folder / "out") == {name: held(store)[name] for name in NAMES}
    assert here.images[0].sigma == 5.0


@release
def test_a_second_run_into_a_folder_is_refused_while_one_writes(
    folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        with pytest.raises(RefusedError, match=r"/out: another run is writing to this folder"):
            run(IN, OUT)
        with pytest.raises(RefusedError, match="another run is writing to this folder"):
            with output_folder(OUT, force=True):
                pass
        return smooth(pixels, channel_axis)

    assert run(IN, OUT, denoise=second).n_failed == 0
    store.put_object(Bucket=BUCKET, Key=f"out/{output.RUNS}/killed", Body=b"")
    with pytest.raises(RefusedError, match="or was killed a moment ago"):
        run(IN, OUT)
    monkeypatch.setattr(output, "_DEAD", 0.0)
    assert run(IN, OUT, denoise=never).n_resumed == 3
    assert not any(name.startswith(output.RUNS) for name in held(store))


@release
def test_what_is_another_is_replaced_by_force_alone(folder: Path, store: Any) -> None:
    run(IN, OUT)
    before = held(store)
    other = partial(run, IN, OUT, settings={"weight": 0.25}, denoise=partial(smooth, weight=0.25))
    with pytest.raises(RefusedError, match=r"a\.png: was made from another input or with other"):
        other()
    # The worker detects a changed input or result.
    save(folder / "in", "a.png", picture(7))
    put(store, folder, "in")
    store.put_object(Bucket=BUCKET, Key="out/sub/b.png", Body=before["sub/b.png"][:-1])
    changed = run(IN, OUT)
    assert [image.status for image in changed.images] == ["failed", "failed", "ok"]
    assert "was made from another input" in changed.images[0].reason
    assert held(store)["a.png"] == before["a.png"]
    assert run(IN, OUT, force=True).n_failed == 0
    assert held(store)["a.png"] != before["a.png"]
    assert held(store)["sub/b.png"] == before["sub/b.png"]
    assert other(force=True).n_failed == 0
    store.put_object(Bucket=BUCKET, Key="theirs/a.png", Body=b"years of work")
    with pytest.raises(RefusedError, match="is not a result of this batch"):
        run(IN, f"s3://{BUCKET}/theirs")
    with pytest.raises(RefusedError, match="would replace this input"):
        run(IN, IN, force=True)


@release
def test_a_result_that_cannot_be_uploaded_fails_alone(
    folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    upload = Place.upload

    def failing(place: Place, path: Path) -> None:
        if place.address.endswith("a.png"):
            raise InputError("the store is overloaded, or fails (5xx).", place.address)
        upload(place, path)

    monkeypatch.setattr(Place, "upload", failing)
    assert [image.status for image in run(IN, OUT).images] == ["failed", "ok", "ok"]
    assert {*held(store)} == {"sub/b.png", "sub/deep/c.png", MANIFEST}
    assert list(temporary.iterdir()) == []


@release
def test_an_image_that_is_a_folder_of_objects(folder: Path, store: Any) -> None:
    zarr = pytest.importorskip("zarr")
    place = folder / "volumes" / "one.zarr"
    group = zarr.open_group(str(place), mode="w", zarr_format=2)
    group.create_array("0", shape=(24, 30), dtype="u1", chunks=(16, 16))[:] = picture(3)
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}
    axes = [{"name": name, "type": "space"} for name in "yx"]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [level]}]
    put(store, folder, "volumes")
    here = run(folder / "volumes", folder / "done")
    assert here.n_failed == 0, here.images
    there = f"s3://{BUCKET}/volumes"
    assert run(there, f"s3://{BUCKET}/done") == here
    stored = held(store, "done")
    assert contents(folder / "done") == {k: v for k, v in stored.items() if k != MANIFEST}
    assert run(f"{there}/one.zarr", f"s3://{BUCKET}/done", denoise=never).n_resumed == 1
    # A killed upload lacks the metadata that marks an image, so the upload is repeated.
    store.delete_object(Bucket=BUCKET, Key="done/one.zarr/.zgroup")
    assert run(there, f"s3://{BUCKET}/done").n_resumed == 0
    assert held(store, "done") == stored


@release
def test_patterns_and_single_objects(folder: Path, store: Any) -> None:
    planned, _ = plan_outputs([f"{IN}/sub/*.png"], folder / "out")
    assert [(item.name, item.output) for item in planned] == [("b.png", "b.png")]
    for pattern in ("**/*.png", "**"):
        planned, _ = plan_outputs([f"{IN}/{pattern}"], folder / "out")
        assert [item.name for item in planned] == NAMES
    planned, _ = plan_outputs([f"{IN}/su*"], folder / "out")
    assert [item.name for item in planned] == NAMES[1:]
    planned, _ = plan_outputs([f"{IN}/a.png", f"{IN}/sub"], folder / "out")
    assert [item.name for item in planned] == ["a.png", "b.png", "deep/c.png"]
    with pytest.raises(InputError, match=r"there is no such object \(404\)"):
        plan_outputs([f"{IN}/none.png"], folder / "out")
    with pytest.raises(InputError, match=r"no object has such a name"):
        plan_outputs([f"{IN}/*.gif"], folder / "out")


@release
def test_a_bucket_of_google(folder: Path) -> None:
    here = run(folder / "in", folder / "out")
    with google_store() as bucket:
        for name in NAMES:
            place_of(f"{bucket}/in/{name}").upload(folder / "in" / name)
        assert run(f"{bucket}/in", f"{bucket}/out").images == here.images
        assert run(f"{bucket}/in", f"{bucket}/out", denoise=never).n_resumed == 3
        written = place_of(f"{bucket}/out").items(recursive=True)
        assert {item.name for item in written if not item.is_folder} == {*NAMES, MANIFEST}
        assert run(f"{bucket}/out/sub", folder / "again").n_failed == 0
