import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from markupsafe import Markup

from kpca_apps.cli.main import main
from kpca_apps.errors import InputError
from kpca_apps.novelty.compare.diff import diff_runs
from kpca_apps.report.novelty.text import diff_headline
from kpca_apps.tables.write import folder_of_parts, write_part

Change = Callable[[dict[str, Any]], None]


def table(n: int = 80) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    frame = pl.DataFrame(
        {
            "code": [f"N{i:03}" for i in range(n)],
            "weight": (60 + 8 * size).round(1),
            "height": (170 + 7 * size + rng.normal(size=n)).round(1),
            "town": np.array(["Bern", "Genf"])[rng.integers(0, 2, n)],
        }
    )
    frame[7, "weight"] = 600.0
    return frame


def run(frame: pl.DataFrame, name: str, *words: str) -> Path:
    frame.write_csv(f"{name}.csv")
    assert main(["novelty", "screen", f"{name}.csv", "--out", name, "--quiet", *words]) == 0
    return Path(name)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Figures are tested in tests/report.
    monkeypatch.setattr("kpca_apps.report.drawing.to_svg", lambda drawing: Markup("<svg/>"))
    monkeypatch.setattr("kpca_apps.report.novelty.figures.screening_figures", lambda result: {})


def test_rows_new_on_the_list_and_removed_from_it_are_those_that_were_changed() -> None:
    before, after = table(), table()
    after[7, "weight"], after[20, "height"] = 60.0, 17.0
    # The order of the rows does not matter.
    diff = diff_runs(run(before, "old"), run(after.reverse(), "new"))
    (new,), (removed,) = diff.appeared, diff.removed
    assert (new.name, new.before, new.now, new.in_both) == ("N020", None, 1, True)
    assert (removed.name, removed.before, removed.now, removed.in_both) == ("N007", 1, None, True)
    assert [name for name, *_ in new.changed] == ["height"]
    assert removed.changed == (("weight", "600.0", "60.0"),)
    assert (diff.stayed, diff.moved, diff.settings_changed) == ((), (), ())


def test_a_scored_table_in_a_folder_of_parts_is_read_as_one() -> None:
    after = table()
    after[7, "weight"] = 60.0
    old, new = run(table(), "old"), run(after, "new", "--format", "parquet")
    whole = diff_runs(old, new)
    rows = pl.read_parquet(new / "scored.parquet").to_arrow()
    (new / "scored.parquet").unlink()
    with folder_of_parts(new / "scored.parquet") as folder:
        for number in range(4):
            write_part(rows.slice(20 * number, 20), folder, number)
    assert replace(diff_runs(old, new), run=whole.run) == whole


def test_a_row_listed_for_an_odd_cell_alone_is_new_on_the_list() -> None:
    after = table()
    after[30, "town"] = "Bernn"
    new = run(after, "new")
    diff = diff_runs(run(table(), "old"), new)
    assert json.loads((new / "result.json").read_text())["n_flagged"] == 1
    assert [row.name for row in diff.stayed] == ["N007"]
    (listed,) = diff.appeared
    assert (listed.name, listed.before, listed.now) == ("N030", None, 2)
    assert listed.reason.startswith('"town": "Bernn", expected "Bern"')


def test_of_cells_that_changed_the_one_that_is_the_reason_comes_first() -> None:
    before, after = table(), table()
    after[20, "weight"], after[20, "height"] = before[20, "weight"] + 0.1, 17.0
    after[7, "weight"] = 60.0
    (new,) = diff_runs(run(before, "old"), run(after, "new")).appeared
    assert [name for name, *_ in new.changed] == ["height", "weight"]


def test_a_column_that_is_renamed_is_reported_at_the_top() -> None:
    old, new = run(table(), "old"), run(table().rename({"height": "tall"}), "new")
    words = ' them: "height", "tall".'
    assert f"Not compared, as one table lacks{words}" in diff_runs(old, new).run.warnings


@pytest.mark.parametrize("name", ["key", "place"])
def test_columns_may_have_the_names_that_rows_are_matched_by(name: str) -> None:
    before, after = table().rename({"height": name}), table().rename({"height": name})
    after[7, "weight"], after[20, name] = 60.0, 17.0
    diff = diff_runs(run(before, "old"), run(after, "new"))
    (new,) = [row for row in diff.appeared if row.name == "N020"]
    assert new.changed == ((name, str(before[20, name]), "17.0"),)


@pytest.mark.parametrize("name", ["=1+1", "rank", "-log10(p)"])
def test_columns_that_are_written_under_another_name_are_named_by_their_own(name: str) -> None:
    before = (
        table().rename({"weight": name, "town": "@town"}).with_columns(code="=" + pl.col("code"))
    )
    after = before.clone()
    after[20, name] = 6000.0
    old, new = run(before, "old"), run(after, "new")
    (one,) = [row for row in diff_runs(old, new).appeared if row.name == "=N020"]
    assert one.changed == ((name, str(before[20, name]), "6000.0"),)
    assert one.reason.startswith(f'"{name}": 6000.0, expected')
    # A value hidden in either run is shown for neither.
    hidden = diff_runs(run(before, "hidden", f"--hide={name}"), new)
    assert not any("6000" in f"{row.reason} {row.changed}" for row in hidden.appeared)


def test_a_row_that_was_accepted_is_stated_to_be(tmp_path: Path) -> None:
    frame = table()
    frame[7, "weight"] = 60.0
    frame[[7]].write_csv("fine.csv")
    diff = diff_runs(run(frame, "old"), run(frame, "new", "--accept", "fine.csv"))
    (removed,) = [row for row in diff.removed if row.name == "N007"]
    assert (removed.before, removed.now, removed.elsewhere) == (1, None, "accepted")
    assert {row.elsewhere for row in diff.removed} <= {"accepted", "not listed"}


def test_rows_without_an_identifier_are_the_same_if_their_cells_are() -> None:
    before = table().drop("code")
    after = before.clone()
    after[20, "height"] = 17.0
    diff = diff_runs(run(before, "old"), run(after.filter(pl.arange(pl.len()) != 7), "new"))
    assert diff.matched_by == "the cells of all shared columns"
    assert [(row.in_both, row.now) for row in diff.removed] == [(False, None)]
    assert [row.name for row in diff.appeared] == ["row 20"]  # its number in the new table
    again = diff_runs(Path("old"), Path("old"))
    assert (len(again.stayed), again.appeared, again.removed) == (1, (), ())


@pytest.mark.release
def test_an_identifier_that_repeats_names_no_rows() -> None:
    before = table().with_columns(pl.col("code").str.head(2))
    after = before.clone()
    after[20, "height"] = 17.0
    words = ("--id", "code", "--share", "0.03")
    diff = diff_runs(run(before, "old", *words), run(after, "new", *words))
    assert diff.matched_by == "the cells of all shared columns"
    # Rows of a list may share an identifier, yet each of them is counted.
    assert len(diff.appeared) + len(diff.stayed) == diff.new.n_flagged
    assert len(diff.removed) + len(diff.stayed) == diff.old.n_flagged


def test_columns_and_settings_that_differ_are_reported_and_hidden_values_are_not() -> None:
    before = table()
    after = before.with_columns(pl.col("height") - 40, extra=pl.arange(pl.len()) % 3 + 0.5)
    words = ("--hide", "height", "--share", "0.05")
    diff = diff_runs(run(before, "old"), run(after.drop("town"), "new", *words))
    assert (diff.moved, diff.hidden_columns) == ((), ("height",))
    assert diff_headline(diff).endswith("; no column moved (hidden columns are not compared).")
    assert diff.matched_by == 'the column "code"'
    assert (diff.added_columns, diff.removed_columns) == (("extra",), ("town",))
    assert ("share", "0.01", "0.05") in diff.settings_changed
    assert ("hidden columns", "", "height") in diff.settings_changed
    assert diff.run.warnings[1:] == (
        'Not compared, as one table lacks them: "town", "extra".',
        'Not compared, as a run hides them: "height".',
    )
    assert not any(name == "height" for row in diff.stayed for name, *_ in row.changed)


def test_runs_that_share_only_hidden_columns_are_reported() -> None:
    old = run(table(), "old", *(f"--hide={name}" for name in table().columns))
    new = run(table().rename({"code": "number"}), "new")
    with pytest.raises(InputError, match=r"every column that new shares with old is hidden"):
        diff_runs(old, new)
    apart = run(table().select(pl.all().name.suffix("_2")), "apart")
    with pytest.raises(InputError, match=r"apart: has no column in common with new;"):
        diff_runs(new, apart)


def damaged(change: Change) -> None:
    path = Path("old/result.json")
    result = json.loads(path.read_text(encoding="utf-8"))
    change(result)
    path.write_text(json.dumps(result), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda result: result.update(kind="papers"), "not the folder of a screening"),
        (lambda result: result.pop("columns"), "of another version"),
        (lambda result: result.update(columns=[1]), "of another version"),
        (lambda result: result.pop("findings"), "of another version"),
        (lambda result: result.pop("run"), "of another version"),
        (lambda result: result.update(n_rows=float("inf")), "of another version"),
        (lambda result: result.update(n_rows=7), "not the table that result.json describes"),
        (lambda result: Path("old/scored.csv").unlink(), "has no scored.csv"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(change: Change, words: str) -> None:
    run(table(), "old")
    damaged(change)
    with pytest.raises(InputError, match=words) as refused:
        diff_runs(Path("old"), Path("old"))
    assert "\n" not in str(refused.value)


def test_of_tables_without_a_common_row_rates_and_kinds_are_compared() -> None:
    later = table().with_columns(code=pl.format("M{}", pl.int_range(80)))
    later[9, "height"] = 17.0
    diff = diff_runs(run(table(), "old", "--count", "2"), run(later, "new", "--count", "3"))
    assert diff.is_apart and (diff.appeared, diff.removed, diff.stayed) == ((), (), ())
    assert diff_headline(diff).startswith(
        "No row is in both tables: 3 of 80 rows are flagged now, 2 of 80 before;"
    )
    far = '"{}" is far {} the rest of the column.'
    assert {*diff.kinds} >= {
        (far.format("weight", "above"), 1, 1),
        (far.format("height", "below"), 0, 1),
    }
    assert main(["novelty", "diff", "old", "new", "--out", "both"]) == 0
    page = Path("both/report.html").read_text(encoding="utf-8")
    assert "1 row, before 0: <bdi>&#34;height&#34; is far below" in page
    # One matching row is enough to compare the two runs.
    later[3, "code"] = "N003"
    assert not diff_runs(Path("old"), run(later, "new", "--count", "3", "--force")).is_apart


def test_the_command_prints_the_changes_and_writes_a_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    after = table()
    after[7, "weight"], after[20, "height"] = 60.0, 17.0
    run(table(), "old")
    run(after, "new")
    capsys.readouterr()
    assert main(["novelty", "diff", "old", "new"]) == 0
    done = capsys.readouterr()
    assert done.out == "kpca-diff-new/report.html\n"
    assert done.err.startswith("1 row is new on the list, 1 is no longer on it, 0 stayed;")
    assert max(map(len, done.err.splitlines())) <= 80
    result = json.loads(Path("kpca-diff-new/result.json").read_text(encoding="utf-8"))
    assert (result["kind"], result["appeared"][0]["name"]) == ("novelty diff", "N020")
    assert "N007" in Path("kpca-diff-new/report.html").read_text(encoding="utf-8")
    assert main(["novelty", "diff", "old", "nowhere"]) == 3
