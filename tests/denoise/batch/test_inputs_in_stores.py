"""Images come from a fake object store; those with impossible names or sizes fail alone."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow.fs import FileType

from kpca_apps.denoise.batch.inputs import plan_outputs
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.errors import ConfigError
from kpca_apps.images.types import FRONT
from kpca_apps.system.files import spools
from kpca_apps.system.stores import buckets
from kpca_apps.system.stores.buckets import place_of
from tests.denoise.toy import SETTINGS, picture, save, smooth


class Objects:
    """A bucket as pyarrow presents it: object names imply the folders."""

    type_name = "s3"

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects, self.sizes = objects, {name: len(data) for name, data in objects.items()}
        self.n_read = self.n_asked = 0

    def get_file_info(self, query: Any) -> Any:
        self.n_asked += 1
        if isinstance(query, str):
            is_folder = any(name.startswith(f"{query}/") for name in self.objects)
            return self._info(query, is_folder=is_folder and query not in self.objects)
        below = [name for name in self.objects if name.startswith(f"{query.base_dir}/")]
        start = len(query.base_dir) + 1
        ends = [(name, end) for name in below for end, c in enumerate(name) if c == "/"]
        folders = {name[:end] for name, end in ends if end > start}
        found = [self._info(name) for name in below]
        return found + [self._info(name, is_folder=True) for name in sorted(folders)]

    def _info(self, path: str, *, is_folder: bool = False) -> Any:
        kind = FileType.Directory if is_folder else FileType.File
        there = is_folder or path in self.objects
        size = self.sizes.get(path)
        kind = kind if there else FileType.NotFound
        return SimpleNamespace(path=path, type=kind, size=size, mtime=1, mtime_ns=1)

    def open_input_stream(self, path: str, **_: Any) -> Any:
        system = self
        if path not in self.objects:
            raise FileNotFoundError(path)

        class Stream(io.BytesIO):
            def read(self, n: int | None = -1) -> bytes:
                data = super().read(n)
                system.n_read += len(data)
                return data

        return Stream(self.objects[path])


@pytest.fixture
def png(tmp_path: Path) -> bytes:
    save(tmp_path, "one.png", picture(1))
    return (tmp_path / "one.png").read_bytes()


def hold(monkeypatch: pytest.MonkeyPatch, **objects: bytes) -> Objects:
    system = Objects({f"box/in/{name}": data for name, data in objects.items()})
    monkeypatch.setattr(buckets, "_s3_system", lambda *_: system)
    return system


def outcomes(out: Path, given: str = "s3://box/in") -> dict[str, tuple[str, str]]:
    result = run_batch([given], out, denoise=smooth, settings=SETTINGS)
    return {image.name: (image.status, image.reason) for image in result.images}


def test_an_odd_name_fails_alone(
    tmp_path: Path, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = ["../y.png", "abs//etc/x.png", "c.png/d.png", "up/../x.png"]
    fine = ["c.png", "q?a=b.png", "sub/ok.png"]
    hold(monkeypatch, **dict.fromkeys([*odd, *fine, "up/../readme.txt"], png))
    for _ in "12":  # the second run must repeat the outcomes
        found = outcomes(tmp_path / "out")
        assert [name for name, (status, _) in found.items() if status == "failed"] == odd
        assert {name for name, (status, _) in found.items() if status == "ok"} == {*fine}
        assert found["up/../x.png"][1].startswith("up/../x.png: has a name that a file here")
    held = {path.name for path in (tmp_path / "out").rglob("*.png")}
    assert held == {"c.png", "q?a=b.png", "ok.png"}
    hold(monkeypatch, **{"a//b.png": png})
    assert outcomes(tmp_path / "none")["a//b.png"][0] == "failed"


def test_a_file_beside_a_folder_of_its_name_is_kept(
    png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(monkeypatch, **{"c.png": png, "c.png/d.png": png})
    for recursive in (False, True):
        items = place_of("s3://box/in").items(recursive=recursive)
        assert {item.name: item.is_folder for item in items}["c.png"] is False


def test_images_are_listed_by_few_requests(png: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for n_images in (1, 9):
        system = hold(monkeypatch, **{f"{number}.png": png for number in range(n_images)})
        planned, _ = plan_outputs(["s3://box/in"], "out")
        assert [item.n_bytes for item in planned] == [len(png)] * n_images
        counts.append(system.n_asked)
    assert counts[0] == counts[1]  # number of requests, not counting reads of an object's start


def test_objects_that_are_too_large_are_not_fetched(
    tmp_path: Path, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = hold(monkeypatch, **{"a.png": png, "b.png": png})
    system.sizes["box/in/a.png"] = 100 * FRONT
    found = outcomes(tmp_path / "out")
    assert "which do not take its" in found["a.png"][1] and found["b.png"][0] == "ok"
    # An object larger than the free disk space is not fetched, either.
    system.sizes["box/in/a.png"] = FRONT
    monkeypatch.setattr(
        spools.shutil, "disk_usage", lambda _: SimpleNamespace(free=spools._RESERVE + FRONT - 1)
    )
    system.n_read = 0
    (status, reason) = outcomes(tmp_path / "out", "s3://box/in/a.png")["a.png"]
    assert (status, "has no room" in reason) == ("failed", True)
    # The file type is read from the first bytes; a fetch would read another `len(png)` bytes.
    assert system.n_read < 2 * len(png)


def test_an_address_with_a_signature_is_refused_still(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="such as credentials"):
        plan_outputs(["s3://box/in/a.png?X-Amz-Signature=5f3a"], tmp_path)
