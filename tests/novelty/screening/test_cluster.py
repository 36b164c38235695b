"""Workers without access to the driver's files give the same bits as one machine."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty import written_tables
from kpca_apps.novelty.columns.parts import Execution
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.novelty.written_tables import write_tables
from kpca_apps.system import finished as kept_parts
from kpca_apps.system.finished import work_folder
from kpca_apps.system.workers import Workers
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.table import PartedTable, TablePart
from kpca_apps.tables.write import Written
from tests.novelty.tables import changed
from tests.stores import BUCKET, moto_store
from tests.system.cluster import Cluster, apart

# Dask closes workers while their connections are in use, which gives the warnings ignored here.
pytestmark = [
    pytest.mark.release,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
OPTIONS = ScreeningOptions(explain=3)
N_ROWS, PART_ROWS = 20_000, 2048


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder that only the driver sees, and a shared one."""
    place = tmp_path_factory.mktemp("cluster")
    for name in ("driver", "shared"):
        (place / name).mkdir()
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, N_ROWS))
    y = np.where(np.arange(N_ROWS) % 997 == 50, 3.0, x + 0.1 * noise)
    kinds = rng.choice(["rook", "crow", "daw"], N_ROWS).astype("U9")
    ages = [f"{row % 91}" for row in range(N_ROWS)]
    y[700], kinds[9_000], ages[15_000], ages[77] = 1e6, "roook", "1O", ""
    frame = pl.DataFrame({"x": x, "y": y, "kind": kinds, "age": ages})
    driver = place / "driver"
    frame.write_csv(driver / "rows.csv")
    frame.write_parquet(driver / "rows.parquet", row_group_size=5000)
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    with pa.ipc.new_stream(driver / "rows.arrows", table.schema) as stream:
        stream.write_table(table)
    with sqlite3.connect(driver / "rows.sqlite") as database:
        database.execute("CREATE TABLE rows (x REAL, y REAL, kind TEXT, age TEXT)")
        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", frame.rows())
    database.close()
    shutil.copy(driver / "rows.parquet", place / "shared")
    return place


@pytest.fixture(autouse=True)
def hidden_temporary_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "driver"))


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[Cluster]:
    with apart(place, place / "driver") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def local_result(place: Path) -> ScreeningResult:
    return screen(opened(place / "driver" / "rows.csv"), options=OPTIONS)[0]


@pytest.fixture
def sent_parts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the parts of the table whose rows are sent to workers."""
    sent: list[str] = []
    carry = TablePart.carried

    def record(self: TablePart) -> TablePart:
        sent.append(str(self))
        return carry(self)

    monkeypatch.setattr(TablePart, "carried", record)
    return sent


def opened(path: Path) -> PartedTable:
    if path.suffix == ".sqlite":
        source, name = f"sqlite:///{path}", "rows"
    else:
        source, name = str(path), None
    table = open_table(source, table_name=name, in_memory_rows=1000, part_rows=PART_ROWS)
    assert isinstance(table, PartedTable)
    return table


def killed_driver(path: Path, folder: Path | str, address: str, last: str) -> None:
    """Screen until a few parts of a pass are finished, then exit at once."""

    @contextmanager
    def progress(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        n_done = 0

        def advance(n_rows: int) -> None:
            nonlocal n_done
            n_done += n_rows
            if what == last and n_done == 4 * PART_ROWS:
                os.kill(os.getpid(), signal.SIGKILL)

        yield advance

    with work_folder(folder, on_dask=True) as kept, Workers("dask", scheduler=address) as workers:
        screen(opened(path), options=OPTIONS, execution=Execution(workers, progress, kept))


@pytest.mark.parametrize("last", ["Reading rows", "Scoring rows"])
def test_a_driver_killed_and_started_again_keeps_what_was_done(
    cluster: Cluster, place: Path, local_result: ScreeningResult, sent_parts: list[str], last: str
) -> None:
    path, folder = place / "driver" / "rows.csv", place / "shared"
    driver = multiprocessing.get_context("spawn").Process(
        target=killed_driver, args=(path, folder, cluster.address, last)
    )
    driver.start()
    driver.join()
    assert driver.exitcode == -signal.SIGKILL
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("kpca-finished/*.msgpack")}
    assert len(kept) >= 4
    with work_folder(folder, on_dask=True) as finished:
        with Workers("dask", scheduler=cluster.address) as workers:
            execution = Execution(workers, finished=finished)
            again, _ = screen(opened(path), options=OPTIONS, execution=execution)
        assert {file: file.stat().st_mtime_ns for file in kept} == kept
        assert finished is not None and kept.keys() < finished.used
    np.testing.assert_array_equal(again.rows.scores, local_result.rows.scores)
    assert again.findings.odd_cells == local_result.findings.odd_cells
    assert {"far above", "unreadable"} <= {cell.kind for cell in again.findings.odd_cells}
    # The copy of the text was shared with the workers; none of it remains.
    assert sent_parts == []
    assert [path.name for path in folder.iterdir()] == ["rows.parquet"]


def written_bytes(
    table: PartedTable, result: ScreeningResult, plan: ColumnPlan, execution: Execution | None
) -> bytes:
    folder = Path(tempfile.gettempdir())
    named = changed(result, flagged_file="flagged.csv")
    write_tables(folder, table, named, plan, execution=execution)
    return (folder / "scored.csv").read_bytes() + (folder / "flagged.csv").read_bytes()


@pytest.mark.parametrize("name", ["rows.csv", "rows.arrows", "rows.parquet", "rows.sqlite"])
def test_rows_are_sent_to_workers_who_cannot_read_them(
    cluster: Cluster, place: Path, local_result: ScreeningResult, sent_parts: list[str], name: str
) -> None:
    table = opened(place / "driver" / name)
    with Workers("dask", scheduler=cluster.address) as workers:
        result, model = screen(table, options=OPTIONS, execution=Execution(workers))
        plan = model.encoder.plan
        scored = written_bytes(table, result, plan, Execution(workers))
    np.testing.assert_array_equal(result.rows.scores, local_result.rows.scores)
    assert scored == written_bytes(table, local_result, plan, None)
    assert len(sent_parts) > len(table.parts)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["driver", "shared"])
def test_workers_write_the_scored_table_where_they_see_its_folder(
    cluster: Cluster,
    place: Path,
    local_result: ScreeningResult,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
) -> None:
    table, out = opened(place / "shared" / "rows.parquet"), place / name / f"{kind}-out"
    _, model = screen(table, options=OPTIONS)
    written: list[int] = []
    write = written_tables.write_part

    def noted(rows: Written, folder: Path, number: int) -> Path:
        written.append(number)
        return write(rows, folder, number)

    monkeypatch.setattr(written_tables, "write_part", noted)
    plan, named = model.encoder.plan, changed(local_result, flagged_file="flagged.csv")
    for folder in (out / "alone", out / "cluster"):
        folder.mkdir(parents=True)
        workers = Workers("serial")
        if folder.name == "cluster":
            workers = Workers("dask", scheduler=cluster.address)
        with workers:
            write_tables(folder, table, named, plan, format=kind, execution=Execution(workers))
    alone, shared = (folder / f"scored.{kind}" for folder in (out / "alone", out / "cluster"))
    if kind == "csv":
        assert shared.read_bytes() == alone.read_bytes()
    else:
        assert pl.read_parquet(shared).equals(pl.read_parquet(alone))
        assert len([*shared.iterdir()]) == len(table.parts)
        # The command itself wrote parts only where workers do not see the folder ("driver").
        assert written == ([] if name == "shared" else [*range(len(table.parts))])
    assert {file.name for file in shared.parent.iterdir()} == {
        file.name for file in alone.parent.iterdir()
    }
    shutil.rmtree(out)


def test_a_copy_that_workers_see_is_read_by_them_and_another_file_is_not(
    cluster: Cluster, place: Path, local_result: ScreeningResult, sent_parts: list[str]
) -> None:
    path = place / "shared" / "rows.parquet"
    table = opened(path)
    os.utime(path, (0, 0))  # as if copying files does not preserve times
    with Workers("dask", scheduler=cluster.client) as workers:
        result, _ = screen(table, options=OPTIONS, execution=Execution(workers))
        np.testing.assert_array_equal(result.rows.scores, local_result.rows.scores)
        assert sent_parts == []
        content = path.read_bytes()
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        with pytest.raises(InputError, match=r"rows\.parquet: the file was changed"):
            screen(table, options=OPTIONS, execution=Execution(workers))
    assert cluster.client.status == "running"


def test_a_worker_killed_and_another_that_joins_change_no_bit(
    cluster: Cluster, place: Path, local_result: ScreeningResult
) -> None:
    passes: list[str] = []

    @contextmanager
    def progress(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        passes.append(what)
        n_done = 0
        if what == "Scoring rows":
            cluster.join()

        def advance(n_rows: int) -> None:
            nonlocal n_done
            n_done += n_rows
            if what == "Reading rows" and n_done == 3 * PART_ROWS:
                cluster.kill()

        yield advance

    table = opened(place / "driver" / "rows.csv")
    with Workers("dask", scheduler=cluster.address) as workers:
        result, _ = screen(table, options=OPTIONS, execution=Execution(workers, progress))
        assert workers.width == 3
    assert {"Reading rows", "Scoring rows"} <= set(passes)
    np.testing.assert_array_equal(result.rows.scores, local_result.rows.scores)


def test_a_work_folder_in_a_bucket_is_read_by_workers_and_found_again(
    place: Path,
    local_result: ScreeningResult,
    sent_parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path, folder = place / "driver" / "rows.csv", f"s3://{BUCKET}/work"
    with moto_store() as store, apart(tmp_path, place / "driver", n_workers=2) as cluster:

        def objects_held() -> dict[str, object]:
            objects = store.list_objects_v2(Bucket=BUCKET).get("Contents", [])
            return {item["Key"]: item["ETag"] for item in objects if not item["Key"].endswith("/")}

        driver = multiprocessing.get_context("spawn").Process(
            target=killed_driver, args=(path, folder, cluster.address, "Scoring rows")
        )
        driver.start()
        driver.join()
        assert driver.exitcode == -signal.SIGKILL
        before = objects_held()
        done = {key for key in before if key.endswith(".msgpack")}
        (copy,) = before.keys() - done
        assert len(done) > 4 and copy.endswith(".arrow")
        with work_folder(folder, on_dask=True) as finished:
            with Workers("dask", scheduler=cluster.address) as workers:
                execution = Execution(workers, finished=finished)
                again, _ = screen(opened(path), options=OPTIONS, execution=execution)
            assert before.items() <= objects_held().items()
        np.testing.assert_array_equal(again.rows.scores, local_result.rows.scores)
        assert again.findings.odd_cells == local_result.findings.odd_cells
        assert sent_parts == []
        # The killed run left a copy of the table, which is kept as long as that run may be resumed.
        assert objects_held().keys() == {copy}
        monkeypatch.setattr(kept_parts, "_KEPT_FOR", -1.0)
        with work_folder(folder, on_dask=True):
            assert objects_held().keys() == {copy}
        assert not objects_held()


def test_rows_that_do_not_fit_into_the_memory_of_workers_change_no_bit(
    place: Path, local_result: ScreeningResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Ignore the memory of the whole process: its libraries alone exceed the limit of 200 kB.
    for what in ("SPILL", "PAUSE", "TERMINATE"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__WORKER__MEMORY__{what}", "False")
    n_moved: list[int] = []
    limit = ("--memory-limit", "200kB")
    with apart(tmp_path, place / "driver", n_workers=2, options=limit) as cluster:

        @contextmanager
        def progress(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
            on_disk = cluster.client.run(lambda dask_worker: len(dask_worker.data.disk))
            n_moved.append(sum(on_disk.values()))
            yield lambda n_rows: None

        with Workers("dask", scheduler=cluster.address) as workers:
            table = opened(place / "driver" / "rows.csv")
            result, _ = screen(table, options=OPTIONS, execution=Execution(workers, progress))
    assert max(n_moved) > len(table.parts) // 2
    np.testing.assert_array_equal(result.rows.scores, local_result.rows.scores)
