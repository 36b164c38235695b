"""Stores of every kind: third-party emulators, and a server that misbehaves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.system.finished import work_folder
from kpca_apps.system.stores import buckets
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.system.stores.output import output_folder
from kpca_apps.tables.opening import open_table
from tests.interrupts import interrupt_after
from tests.stores import (
    ACCOUNT_KEY,
    azure_environment,
    azure_store,
    google_store,
    misbehaving_store,
    s3_store,
)
from tests.system.test_finished import of_numbers

pytestmark = pytest.mark.release
ROWS = pl.DataFrame({"number": range(60), "town": ["Bonn"] * 20 + ["Köln"] * 20 + ["Ulm"] * 20})


@pytest.fixture(scope="module", params=[s3_store, google_store, azure_store])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as address:
        yield address


def put(path: Path, address: str) -> None:
    place_of(address).upload(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_folders_and_patterns_are_read_as_those_on_disk(
    suffix: str, store: str, tmp_path: Path
) -> None:
    for (town,), part in ROWS.group_by(["town"], maintain_order=True):
        (tmp_path / f"town={town}").mkdir()
        path = tmp_path / f"town={town}" / f"part{suffix}"
        (part.write_csv if suffix == ".csv" else part.write_parquet)(path)
        put(path, f"{store}/hive{suffix}/town={town}/{path.name}")
    for here, there in (
        (tmp_path, f"{store}/hive{suffix}"),
        (tmp_path / "town=[BK]*" / "*", f"{store}/hive{suffix}/town=[BK]*/*"),
        (path, f"{store}/hive{suffix}/town={town}/{path.name}"),
    ):
        tables = [open_table(str(place)) for place in (here, there)]
        assert tables[0].source.sha256 == tables[1].source.sha256
        assert tables[0].frame.equals(tables[1].frame)  # type: ignore[union-attr]


def test_a_run_is_written_and_replaced_without_touching_others(store: str) -> None:
    for name, force in (("old.csv", False), ("new.csv", True)):
        folder = output_folder(f"{store}/run", force=force)
        folder.check()
        with folder as building:
            (building / "figures").mkdir()
            (building / "figures" / name).write_text("a")
    found = place_of(f"{store}/run").items(recursive=True)
    assert {entry.name for entry in found if not entry.is_folder} == {"figures/new.csv", "run.json"}
    marker = json.loads(b"".join(place_of(f"{store}/run/run.json").chunks()))
    assert marker["files"] == ["figures/new.csv"]
    with pytest.raises(RefusedError, match="exists already; replace it with --force"):
        output_folder(f"{store}/run").check()
    place_of(f"{store}/run/thesis.tex").write([b"years of work"])
    with pytest.raises(RefusedError, match=r"something other than an earlier run, \"thesis.tex\""):
        output_folder(f"{store}/run", force=True).check()
    with pytest.raises(RefusedError, match="is an object; name a folder"):
        output_folder(f"{store}/run/thesis.tex", force=True).check()


def test_a_work_folder_is_left_empty(store: str) -> None:
    with work_folder(f"{store}/work", on_dask=True) as parts:
        assert parts is not None
        of_numbers(parts).put(0, 2, pl.Series([0.5, 1.0]).to_numpy())
        assert of_numbers(parts).get(0, 2).tolist() == [0.5, 1.0]
    items = place_of(f"{store}/work").items(recursive=True)
    assert not [item for item in items if not item.is_folder]


def test_missing_objects_are_reported(store: str) -> None:
    with pytest.raises(InputError, match=r"there is no such object \(404\)"):
        open_table(f"{store}/none.csv")
    scheme = store.partition("://")[0]
    with pytest.raises(InputError, match=r"no such (bucket|object) \(404\)"):
        output_folder(f"{scheme}://no-such-bucket/out").check()


def test_a_wrong_azure_key_is_reported_but_not_shown() -> None:
    key = f"{ACCOUNT_KEY[-3::-1]}=="
    with azure_store() as address:
        endpoint = os.environ["AZURE_STORAGE_CONNECTION_STRING"].rpartition("BlobEndpoint=")[2]
        with (
            azure_environment(endpoint.rpartition("/")[0], key),
            pytest.raises(InputError, match=r"access is denied \(403\).*AZURE_STORAGE") as caught,
        ):
            open_table(f"{address}/rows.csv")
    assert key not in str(caught.value) and "\n" not in str(caught.value)


# Azure's library resumes an interrupted download by itself.
@pytest.mark.parametrize(
    ("scheme", "fault", "message"),
    [
        ("s3", "cut", "the store broke off in the middle of the object; try again"),
        ("s3", "slow", "the store did not answer for 1 s; try again later"),
        ("s3", "region", "the bucket lies in another region; set AWS_REGION=eu-west-1"),
        ("s3", "down", r"the store is overloaded, or fails \(5xx\)"),
        ("gs", "denied", r"access is denied \(403\).*GOOGLE_APPLICATION"),
        ("az", "denied", r"access is denied \(403\).*AZURE_STORAGE"),
        ("gs", "down", r"the store is overloaded, or fails \(5xx\)"),
        ("az", "down", r"the store is overloaded, or fails \(5xx\)"),
        ("gs", "cut", "the store broke off in the middle of the object"),
    ],
)
def test_a_failing_store_is_reported_in_one_line(
    scheme: str, fault: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(buckets, "REQUEST", 1.0)
    monkeypatch.setattr(buckets, "TRIES", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with misbehaving_store(fault), pytest.raises(InputError, match=message) as caught:
        open_table(f"{scheme}://bucket/rows.csv")
    assert "\n" not in str(caught.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_an_interrupt_is_heard_while_a_store_stalls(scheme: str) -> None:
    with misbehaving_store("slow"):
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt), interrupt_after(0.5):
            open_table(f"{scheme}://bucket/rows.csv")
        assert time.monotonic() - began < 2.5  # the server would answer after 3 s
