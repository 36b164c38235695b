import errno
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest

from kpca_apps.cli.novelty.each import _folders
from kpca_apps.cli.schema import schemas
from kpca_apps.novelty.compare.diff import diff_runs
from kpca_apps.tables.opening import expand_each
from tests.cli.conftest import Run, assert_refused
from tests.novelty.tables import frame_of
from tests.report.pages import check_isolated, check_sound


@pytest.fixture
def tables(folder: Path) -> Path:
    """Create a folder of three tables, the last of them damaged."""
    (folder / "data").mkdir()
    for seed, name in enumerate(("may", "june")):
        frame_of(60, seed=seed, odd=3).write_csv(folder / "data" / f"{name}.csv")
    (folder / "data" / "broken.csv").write_text('a,b\n"1,2\n')
    return folder / "data"


def index(folder: str = "out") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(folder, "index.json").read_text("utf-8"))
    return loaded


def test_each_table_has_the_report_that_it_has_by_itself(kpca: Run, tables: Path) -> None:
    done = kpca("screen", "data", "--each", "--out", "out")
    assert done.code == 5
    failed = [line for line in done.err.splitlines() if line.startswith("failed: ")]
    assert len(failed) == 1 and "broken.csv: the row on line 2 opens a quote" in failed[0]
    lines = [line.split() for line in done.out.splitlines()]
    assert [line[0] for line in lines[1:-1]] == ["broken.csv", "june.csv", "may.csv"]
    assert (lines[1][-1], lines[-1]) == ("failed", ["out/index.html"])
    assert kpca("screen", "data/may.csv", "--out", "alone").code == 0
    for name in ("scored.csv", "flagged.csv", "odd_cells.csv"):
        assert Path("out/may", name).read_bytes() == Path("alone", name).read_bytes()
    content = json.loads(Path("out/may/result.json").read_text("utf-8"))
    assert content["run"]["command"] == "kpca novelty screen data/may.csv --out out/may --force"
    of_may = index()["tables"][-1]
    result = json.loads(Path("alone/result.json").read_text("utf-8"))
    assert [of_may[key] for key in ("n_rows", "n_flagged")] == [
        result["n_rows"],
        result["n_flagged"],
    ]
    assert of_may["n_odd_cells"] == result["findings"]["n_odd_cells"]
    top = result["ranked"][0]
    assert of_may["oddest"].startswith(f"{top['id']} (line {top['line']}): its ")
    # The command stated in a report replaces this report alone; then `--each` can still replace all
    # reports. Its exit code is 5, because one table fails.
    assert kpca(*content["run"]["command"].split()[2:]).code == 0
    assert kpca("screen", "data", "--each", "--out", "out", "--force").code == 5


def test_an_index_links_every_report_and_lists_failures(kpca: Run, tables: Path) -> None:
    (tables / "\u202eod d é'<b>.csv").write_bytes((tables / "may.csv").read_bytes())
    assert kpca("screen", "data", "--each", "--out", "out").code == 5
    html = Path("out/index.html").read_text("utf-8")
    page = check_sound(html)
    check_isolated(html)
    content = index()
    links = [link["href"] for link in page.all("a")]
    assert len(links) == 3 == content["n_tables"] - content["n_failed"]
    for link in links:
        assert Path("out", unquote(link)).is_file()
    assert "not screened: the row on line 2 opens a quote" in page.text
    assert str(tables) not in html


def test_columns_that_moved_are_those_of_a_diff_with_the_run_before(
    kpca: Run, tables: Path
) -> None:
    words = ("screen", "data/may.csv", "data/june.csv", "--each", "--out", "out", "--json")
    assert [table["before"] for table in json.loads(kpca(*words).out)["tables"]] == [None, None]
    Path("out").rename("kept")
    frame = pl.read_csv("data/may.csv")
    frame.with_columns(pl.col("mass") + 5 * pl.col("mass").std()).write_csv("data/may.csv")
    assert kpca(*words).code == 0
    Path("out").rename("plain")
    Path("kept").rename("out")
    again = json.loads(kpca(*words, "--force").out)
    may, june = again["tables"]
    assert [item["column"] for item in may["moved"]] == ["mass"]
    assert (june["moved"], june["n_new"], june["n_removed"]) == ([], 0, 0)
    assert "columns moved in may.csv" in again["sentence"]
    assert again["$schema"] == schemas()["novelty-index"]["$id"]
    assert may["moved"][0]["words"] in check_sound(Path("out/index.html").read_text("utf-8")).text


def test_an_earlier_run_that_cannot_be_compared_is_reported(kpca: Run, tables: Path) -> None:
    words = ("screen", "data/may.csv", "--each", "--out", "out")
    assert kpca(*words).code == 0
    Path("out/may/result.json").write_text("{}")
    done = kpca(*words, "--force")
    assert done.code == 0
    assert "may.csv is not compared: the run before: is not the" in done.heard
    assert str(tables.parent) not in Path("out/index.html").read_text("utf-8")


def test_hidden_columns_stay_hidden_in_an_index(kpca: Run, tables: Path) -> None:
    words = ("screen", "data/may.csv", "--each", "--out", "out", "--hide", "mass")
    assert kpca(*words).code == 0
    frame = pl.read_csv("data/may.csv")
    frame.with_columns(pl.col("mass") + 5 * pl.col("mass").std()).write_csv("data/may.csv")
    assert kpca(*words, "--force").code == 0
    assert index()["tables"][0]["moved"] == []


def test_tables_that_do_not_fit_together_suggest_each(kpca: Run, tables: Path) -> None:
    (tables / "broken.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    assert_refused(kpca("screen", "data"), 3, "Or screen each by itself: --each.")


def test_a_dry_run_prints_a_plan_for_each(kpca: Run, tables: Path) -> None:
    done = kpca("screen", "data", "--each", "--dry-run", "--out", "out")
    assert done.code == 5 and not Path("out").exists()
    assert [line for line in done.out.splitlines() if line.endswith(":")] == [
        "data/june.csv:",
        "data/may.csv:",
    ]


def test_folders_differ_on_any_disk() -> None:
    names = _folders(["a/T.csv", "b/t.csv", "t_2.csv", "index.html.csv", "???.csv", "run.json"])
    assert len({name.casefold() for name in names} | {"index.html", "run.json"}) == len(names) + 2
    assert names[:2] == ["T", "t_2"]


def test_files_of_a_folder_of_parquet_are_tables_of_their_own(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "c.csv", ".hidden.csv", "read.me"):
        (tmp_path / name).touch()
    (tmp_path / "d.csv").mkdir()
    paths = [Path(path).name for path in expand_each([str(tmp_path)])]
    assert paths == ["a.parquet", "b.parquet", "c.csv"]


def test_the_runs_of_each_can_be_compared(kpca: Run, tables: Path) -> None:
    for out in ("one", "two"):
        assert kpca("screen", "data/may.csv", "--each", "--out", out).code == 0
    diff = diff_runs(Path("one/may"), Path("two/may"))
    assert (diff.appeared, diff.removed, diff.moved) == ((), (), ())


def test_a_full_disk_is_no_fault_of_a_table(
    kpca: Run, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk ends the command; the index and reports of the earlier run stay unchanged."""
    assert kpca("screen", "data", "--each", "--out", "out").code == 5
    before = index()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kpca_apps.novelty.written_tables.write_scored", full)
    done = kpca("screen", "data", "--each", "--out", "out", "--force")
    assert done.code == 3
    assert done.err.splitlines()[-1].startswith("error: out: no space left on its disk")
    assert index() == before and Path("out/may/report.html").exists()
