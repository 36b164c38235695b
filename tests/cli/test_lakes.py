"""The command on tables of object stores and lakes: what it prints, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import Run, assert_refused, result
from tests.stores import BUCKET, SECRET, moto_store

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with moto_store() as client:
        yield client


def test_from_a_bucket_into_a_bucket(kpca: Run, store: Any) -> None:
    store.upload_file("birds.csv", BUCKET, "birds.csv")
    table, out = f"s3://{BUCKET}/birds.csv", f"s3://{BUCKET}/runs/first"
    done = kpca("screen", table, "--count", 3, "--out", out)
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"{out}/report.html"
    assert kpca("screen", "birds.csv", "--count", 3, "--out", "here").code == 0

    def there(name: str) -> bytes:
        held: bytes = store.get_object(Bucket=BUCKET, Key=f"runs/first/{name}")["Body"].read()
        return held

    names = {path.name for path in Path("here").rglob("*") if path.is_file()}
    assert {*json.loads(there("run.json"))["files"], "run.json"} >= names - {"figures"}
    for name in ("scored.csv", "flagged.csv"):
        assert there(name) == Path("here", name).read_bytes()
    command = f"kpca novelty screen {table} --count 3 --out {out} --force"
    assert json.loads(there("result.json"))["command"] == command
    written = [there(name).decode() for name in ("run.json", "result.json", "report.html")]
    assert not any(SECRET in words for words in (done.out, done.err, *written))

    fine = ("--accept", f"{out}/flagged.csv")
    done = kpca("score", f"{out}/model.kpca", table, *fine, "--out", "scored")
    assert done.code == 0
    assert_refused(kpca("screen", table, "--out", out), 4, "exists already; replace it")
    assert_refused(kpca("screen", f"s3://{BUCKET}/none.csv"), 3, "there is no such object (404)")


def test_the_version_of_a_delta_table_is_named(kpca: Run) -> None:
    deltalake = pytest.importorskip("deltalake", reason="reading Delta needs the extra lake")
    birds = pl.read_csv("birds.csv")
    deltalake.write_deltalake("lake", birds.to_arrow())
    deltalake.DeltaTable("lake").delete("mass > 4200")
    left = birds.filter(~(pl.col("mass") > 4200))
    for words, version, n_rows in (((), "1", left.height), (("--as-of", 0), "0", birds.height)):
        out = f"of-{version}"
        assert kpca("screen", "lake", *words, "--out", out).code == 0
        found = result(out)["source"]
        assert (found["version"], found["n_rows"]) == (version, n_rows)
        assert json.loads(Path(out, "run.json").read_text())["version of the table"] == version
        assert f"Version {version} of the Delta table." in Path(out, "report.html").read_text()
        assert kpca("rules", "lake", *words, "--out", f"{out}.json", "--force").code == 0
        rules = json.loads(Path(f"{out}.json").read_text())
        assert rules["n_rows"] == n_rows
    done = kpca("screen", "birds.csv", "--as-of", 1)
    assert_refused(done, 2, "--as-of does not apply to text")
