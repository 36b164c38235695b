import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import Done, Run, assert_refused, result
from tests.denoise.toy import save
from tests.stores import BUCKET, SECRET

pytestmark = pytest.mark.release


def test_from_a_bucket_into_a_bucket(kpca: Run, store: Any) -> None:
    store.upload_file("birds.csv", BUCKET, "birds.csv")
    table, out = f"s3://{BUCKET}/birds.csv", f"s3://{BUCKET}/runs/first"
    done = kpca("screen", table, "--count", 3, "--out", out)
    assert done.code == 0 and done.out.splitlines()[-1] == f"{out}/report.html"
    assert kpca("screen", "birds.csv", "--count", 3, "--out", "here").code == 0

    def there(name: str) -> bytes:
        held: bytes = store.get_object(Bucket=BUCKET, Key=f"runs/first/{name}")["Body"].read()
        return held

    names = {path.name for path in Path("here").rglob("*") if path.is_file()}
    assert {*json.loads(there("run.json"))["files"], "run.json"} >= names - {"figures"}
    for name in ("scored.csv", "flagged.csv"):
        assert there(name) == Path("here", name).read_bytes()
    command = f"kpca novelty screen {table} --count 3 --out {out} --force"
    assert json.loads(there("result.json"))["run"]["command"] == command
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
        source = result(out)["source"]
        assert (source["version"], source["n_rows"]) == (version, n_rows)
        assert json.loads(Path(out, "run.json").read_text())["version of the table"] == version
        assert f"Version {version} of the Delta table." in Path(out, "report.html").read_text()
        assert kpca("rules", "lake", *words, "--out", f"{out}.json", "--force").code == 0
        assert json.loads(Path(f"{out}.json").read_text())["n_rows"] == n_rows
    assert_refused(kpca("screen", "birds.csv", "--as-of", 1), 2, "--as-of does not apply to text")


def test_images_from_a_bucket_into_a_bucket(
    run_kpca: Run, store: Any, compiled: None, folder: Path, undrawn: None
) -> None:
    pixels = np.random.default_rng(0).normal(120, 10, (40, 48)).astype("u1")
    for name in ("a.png", "x/b.png"):
        store.upload_file(str(save(folder, name, pixels)), BUCKET, f"pictures/{name}")
    inputs, out = f"s3://{BUCKET}/pictures", f"s3://{BUCKET}/clean"

    def kpca(*words: object) -> Done:
        return run_kpca("denoise", *words)

    draft = ("--quality", "draft", "--jobs", 1)
    planned = kpca("run", inputs, *draft, "--out", out, "--dry-run")
    assert planned.out.splitlines()[0] == f"a.png -> {out}/images/a.png"
    for word in ("denoised", "1 was done by an earlier run", "All of these were done"):
        done = kpca("run", inputs, *draft, "--out", out)
        assert (done.code, done.out) == (0, f"{out}/report/report.html\n")
        assert word in done.err and f"The images are in {out}/images." in done.err
        assert SECRET not in done.err
        if word == "denoised":
            store.delete_object(Bucket=BUCKET, Key="clean/images/a.png")
    content = json.loads(
        store.get_object(Bucket=BUCKET, Key="clean/report/result.json")["Body"].read()
    )
    assert content["command"] == f"kpca denoise run {inputs} --quality draft --out {out}"
    assert kpca("noise", f"{inputs}/a.png").out.splitlines()[1].startswith("a.png")
    shown = kpca("run", inputs, *draft, "--preview", "--out", out)
    assert shown.out == f"{out}/preview/report.html\n"
    learned = kpca("fit", inputs, "--model", "d.kpca", "--patch-size", 8, "--sigma", 10)
    assert (learned.code, learned.out) == (0, "d.kpca\n")
    assert_refused(kpca("fit", inputs, "--model", f"{out}/d"), 3, "then upload it")
    assert_refused(kpca("run", f"{inputs}/none.png"), 3, "there is no such object (404)")
    assert_refused(kpca("run", inputs, "--out", inputs), 4, "is the folder of the inputs, where")
    assert_refused(kpca("run", inputs, "--out", "s3://no-such-bucket/x"), 3, "no such bucket (404)")
