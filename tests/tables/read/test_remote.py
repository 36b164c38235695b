"""Object-store tables equal the local files, and a store's failures are one-line errors."""

import re
import urllib.request
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.screening.model import load_model
from kpca_apps.system.stores import buckets
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.tables.opening import expand_each, open_table
from kpca_apps.tables.table import PartedTable, Table
from tests.stores import BUCKET, SECRET, misbehaving_store, s3_environment

pytestmark = pytest.mark.release

ROWS = pl.DataFrame({"number": range(60), "town": ["Ulm", "Bonn", "Köln"] * 20})


def put(store: Any, folder: Path, prefix: str) -> str:
    """Upload the files of a folder and return their address."""
    for path in folder.rglob("*"):
        if path.is_file():
            store.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder)}")
    return f"s3://{BUCKET}/{prefix}"


def write(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xlsx":
        frame.write_excel(path)
    else:
        how = {".csv": "csv", ".jsonl": "ndjson", ".parquet": "parquet", ".arrow": "ipc"}
        getattr(frame, f"write_{how[path.suffix]}")(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow", ".xlsx"])
@pytest.mark.parametrize("in_memory", [10, 1000])
def test_a_file_of_any_kind_is_the_same_table_there(
    suffix: str, in_memory: int, store: Any, tmp_path: Path
) -> None:
    path = tmp_path / f"rows{suffix}"
    write(ROWS, path)
    address = f"{put(store, tmp_path, f'kinds{suffix}')}/{path.name}"
    here, there = (
        open_table(place, in_memory_rows=in_memory, part_rows=16) for place in (path, address)
    )
    assert here.source == there.source
    assert type(here) is type(there) is (Table if in_memory == 1000 else PartedTable)
    frames = [pl.concat([part.frame for part in table.tables()]) for table in (here, there)]
    assert frames[0].equals(frames[1])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_folders_and_patterns_are_read_as_those_on_disk(
    suffix: str, store: Any, tmp_path: Path
) -> None:
    for number, start in enumerate(range(0, 60, 20)):
        write(ROWS[start : start + 20], tmp_path / f"part-{number}{suffix}")
    (tmp_path / "_SUCCESS").touch()
    address = put(store, tmp_path, f"folder{suffix}")
    for here, there in ((tmp_path, address), (tmp_path / "part-[01]*", f"{address}/part-[01]*")):
        tables = [open_table(str(table)) for table in (here, there)]
        assert tables[0].source.sha256 == tables[1].source.sha256
        assert tables[0].frame.equals(tables[1].frame)  # type: ignore[union-attr]
    files = [f"{address}/part-{number}{suffix}" for number in range(3)]
    assert expand_each(f"{address}/*") == files


def test_a_delta_table_is_read_where_it_is(store: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="reading Delta needs the extra lake")
    deltalake.write_deltalake(tmp_path, ROWS.to_arrow())
    deltalake.DeltaTable(tmp_path).delete("number < 10")
    address = put(store, tmp_path, "delta")
    table = open_table(address)
    assert table.frame.equals(ROWS[10:])  # type: ignore[union-attr]
    assert table.source.version == "1"
    assert open_table(address, as_of=0).source.n_rows == 60


def test_a_missing_object_is_reported(store: Any) -> None:
    for address, what in (
        (f"s3://{BUCKET}/none.csv", "object"),
        ("s3://no-such-bucket/a.csv", "bucket"),
        ("s3://no-such-bucket/in/*.csv", "bucket"),
        ("s3://no-such-bucket", "bucket"),
    ):
        message = re.escape(f"{address}: there is no such {what} (404).")
        with pytest.raises(InputError, match=f"^{message}$"):
            open_table(address)
    with pytest.raises(InputError, match=r"there is no such bucket \(404\)"):
        load_model("s3://no-such-bucket/model.kpca")
    store.put_object(Bucket=BUCKET, Key="shop.db", Body=b"SQLite format 3\0" + bytes(84))
    with pytest.raises(InputError, match=r"a database; copy it here, name it sqlite:///shop\.db"):
        open_table(f"s3://{BUCKET}/shop.db")
    with pytest.raises(InputError, match="no object has such a name"):
        open_table(f"s3://{BUCKET}/none/*.csv")
    store.put_object(Bucket=BUCKET, Key="notes/read.me", Body=b"nothing")
    with pytest.raises(InputError, match="notes: this is a folder without Parquet files or other"):
        open_table(f"s3://{BUCKET}/notes/")


def test_missing_rights_name_the_credentials_that_are_looked_up(store: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    address = f"{put(store, tmp_path, 'denied')}/rows.csv"
    url = store.meta.endpoint_url

    def allow_unknown(n_actions: str) -> None:
        request = urllib.request.Request(
            f"{url}/moto-api/reset-auth", n_actions.encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()

    allow_unknown("0")
    try:
        with pytest.raises(InputError, match=r"access is denied \(403\).*AWS_PROFILE") as caught:
            open_table(address)
    finally:
        allow_unknown("inf")
    assert SECRET not in str(caught.value)


def test_a_listing_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "LISTED", 1.0)
    with misbehaving_store("endless"), pytest.raises(InputError, match="lists objects without an"):
        place_of("s3://bucket/in").items(recursive=True)


def test_object_names_do_not_escape_the_bucket(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    write(ROWS, tmp_path / "rows.parquet")
    for name in ("year=1/a.parquet", "year=1/../../../../b.parquet", "year=2/c.parquet"):
        store.upload_file(str(tmp_path / "rows.parquet"), BUCKET, f"hostile/{name}")
    assert open_table(f"s3://{BUCKET}/hostile").source.n_rows == 120
    assert [item.name for item in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_name_with_an_empty_part_overwrites_no_file(store: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("a\n1\n")
    for name in ("rows.parquet", str(mine)):
        store.put_object(Bucket=BUCKET, Key=f"deep/year=1/{name}", Body=b"stolen")
    with pytest.raises(InputError, match="has an empty part"):
        open_table(f"s3://{BUCKET}/deep")
    assert mine.read_text() == "a\n1\n"


def test_an_unreachable_store_is_reported() -> None:
    with (
        s3_environment("http://127.0.0.1:9"),
        pytest.raises(InputError, match="the store cannot be reached"),
    ):
        open_table("s3://bucket/rows.csv")
