import json
import logging
import subprocess
import sys
from itertools import product
from pathlib import Path

import openpyxl
import polars as pl
import pytest

from tests.cli.conftest import Run, assert_refused, result
from tests.novelty.tables import frame_of
from tests.quick import quick

PARTS = {
    *("figures", "flagged.csv", "model.kpca", "report.html", "result.json", "run.json"),
    *("odd_cells.csv", "scored.csv"),
}


def test_screen_writes_one_folder_and_ends_with_its_report(whole_kpca: Run, folder: Path) -> None:
    done = whole_kpca("screen", "birds.csv", "--id", "name", "--label", "kind", "--count", 3).ok()
    assert done.out == "kpca-novelty-birds/report.html\n"
    assert {path.name for path in (folder / "kpca-novelty-birds").iterdir()} == PARTS
    pictures = list((folder / "kpca-novelty-birds" / "figures").iterdir())
    assert pictures
    assert all(picture.read_bytes()[:4] == b"\x89PNG" for picture in pictures)
    assert done.err.startswith("3 of 60 rows stand out; bird 005")
    heard = done.heard
    assert "The count flags the 3 rows of 60" in heard and "How rare: the share of the " in heard
    assert "Against the labels, " in heard
    assert "model.kpca holds rows of birds.csv" in done.err
    assert max(map(len, done.err.splitlines())) <= 80


def test_flagged_rows_are_written_to_be_sent_on(
    kpca: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kpca("fit", "clean.csv", "--model", "clean.kpca", "--id", "name").code == 0
    done = kpca("score", "clean.kpca", "birds.csv", "--flagged", "xlsx")
    out = folder / "kpca-novelty-birds"
    run = result()
    n = run["n_flagged"]
    assert len(run["lists"]["flagged"]) == n >= 3
    for text in (done.heard, (out / "report.html").read_text("utf-8")):
        assert "flagged.xlsx" in text
    assert f"flagged.xlsx holds {n} rows: send it to anyone who can correct the data." in done.heard
    sheet = openpyxl.load_workbook(out / "flagged.xlsx").active
    assert sheet.max_row == n + 1
    ids = [row[2].value for row in sheet.iter_rows(min_row=2)]
    assert ids == [row["id"] for row in run["lists"]["flagged"]]
    # A missing library is reported before any work.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = kpca("score", "no.kpca", "no.csv", "--flagged", "xlsx", "--out", "other")
    assert_refused(refused, 2, 'pip install ".[excel]"')


LISTS = ("scored.csv", "flagged.csv", "odd_cells.csv")


def german(path: Path, delimiter: str = ";") -> pl.DataFrame:
    """Write a table of birds with decimal commas; return its frame."""
    frame = frame_of(200, odd=3)
    frame[5, "wing"] = 1043.25
    numbers = ["wing", "bill", "mass"]
    written = frame.with_columns(
        pl.col(numbers).round(3).cast(pl.String).str.replace(".", ",", literal=True)
    )
    written.write_csv(path, separator=delimiter)
    return written


@pytest.mark.parametrize(
    ("delimiter", "in_parts"), quick([*product(";\t,", (False, True))], (";", False), ("\t", True))
)
def test_lists_are_written_like_the_input_on_request(
    kpca: Run, delimiter: str, in_parts: bool, request: pytest.FixtureRequest
) -> None:
    written = german(Path("voegel.csv"), delimiter)
    if in_parts:
        request.getfixturevalue("small_limit")
    kpca("screen", "voegel.csv", "--format", "same", "--id", "name", "--out", "same").ok()
    assert kpca("screen", "voegel.csv", "--id", "name", "--out", "plain").code == 0
    for name in LISTS:
        same, plain = (
            pl.read_csv(f"{folder}/{name}", separator=cut, infer_schema=False)
            for folder, cut in (("same", delimiter), ("plain", ","))
        )
        ours = [n for n in ("novelty_score", "rarity", "p_value", "share") if n in same.columns]
        assert same.columns == plain.columns
        # A missing number is an empty pair of quotes if numbers are quoted.
        points = pl.col(ours).str.replace(",", ".", literal=True).replace("", None)
        assert same.with_columns(points).equals(plain)
        assert not ours or "," in same[ours[0]].drop_nulls()[0]
    scored = pl.read_csv("same/scored.csv", separator=delimiter, infer_schema=False)
    assert scored.select(written.columns).equals(written.cast(pl.String))


def test_lists_like_the_input_are_read_back(kpca: Run) -> None:
    german(Path("voegel.csv"))
    words = ("screen", "voegel.csv", "--format", "same", "--id", "name", "--out")
    assert kpca(*words, "first").code == 0
    kpca(*words, "second", "--accept", "first/flagged.csv").ok()
    n_listed = len(result("first")["lists"]["flagged"])
    assert result("second")["lists"]["accepted"]["n_rows"] == n_listed
    Path("diff.toml").write_text("quiet = true\n", encoding="utf-8")
    compared = kpca("diff", "first", "second", "--json", "--config", "diff.toml")
    assert (compared.code, compared.err) == (0, "")


def test_rows_marked_in_a_report_are_known_to_every_command(kpca: Run) -> None:
    assert kpca("screen", "birds.csv", "--count", "3", "--out", "first").code == 0
    top = result("first")["ranked"][:3]
    head = "row_key,row,mark"
    marked = zip(top, ("fine", "known", "wrong"), strict=True)
    lines = [f"{entry['key']},{entry['row']},{mark}" for entry, mark in marked]
    Path("marks.csv").write_text("\n".join([head, *lines]), encoding="utf-8")
    words = ("--count", "3", "--marks", "marks.csv")
    done = kpca("screen", "birds.csv", *words, "--out", "second")
    assert "1 fine and learned as normal, 1 known and not listed and 1 wrong" in done.heard
    listed = [entry["row"] for entry in result("second")["lists"]["flagged"]]
    assert listed[0] == top[2]["row"] and not {top[0]["row"], top[1]["row"]} & {*listed}
    done = kpca("score", "first/model.kpca", "birds.csv", *words, "--out", "third")
    assert "1 fine and not listed" in done.heard
    row = str(top[2]["row"])
    done = kpca("explain", "first/model.kpca", "birds.csv", "--row", row, "--marks", "marks.csv")
    assert done.code == 0 and done.out.startswith(f"Row {row} "), done
    assert kpca("screen", "birds.csv", "--marks", "birds.csv").code == 3


def test_the_format_of_a_parquet_file_is_parquet(kpca: Run, folder: Path) -> None:
    pl.read_csv("birds.csv").write_parquet("birds.parquet")
    assert kpca("screen", "birds.parquet", "--format", "same", "--out", "same").code == 0
    assert pl.read_parquet("same/scored.parquet").height == 60
    assert (folder / "same" / "flagged.csv").read_text("utf-8-sig").startswith("rank,row,")


def test_a_reference_and_parquet(kpca: Run) -> None:
    words = ("birds.csv", "--reference", "clean.csv", "--exclude", "kind", "--format", "parquet")
    done = kpca("screen", *words).ok()
    scored = pl.read_parquet("kpca-novelty-birds/scored.parquet")
    assert scored.filter(pl.col("p_value") <= 0.05).height == scored["flagged"].sum() >= 3
    assert "About 5 % of new rows" in done.err


def test_json_and_quiet(kpca: Run) -> None:
    done, logger = kpca("screen", "birds.csv", "--json", "--quiet"), logging.getLogger("kpca_apps")
    assert (done.err, logger.isEnabledFor(logging.WARNING)) == ("", False)
    assert done.out == Path("kpca-novelty-birds/result.json").read_text(encoding="utf-8")
    assert json.loads(done.out)["threshold"]["rule"] == "share"
    assert kpca("screen", "birds.csv", "--force").err and logger.isEnabledFor(logging.WARNING)


def test_a_dry_run_prints_the_plan_and_writes_nothing(kpca: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = kpca("screen", "birds.csv", "--dry-run", "--exclude", "colour")
    assert done.code == 0
    assert [line.split()[:2] for line in done.out.splitlines()][-2:] == [
        ["colour", "excluded"],
        ["kind", "categorical"],
    ]
    plan = json.loads(kpca("screen", "birds.csv", "--dry-run", "--json").out)
    assert [column["name"] for column in plan["columns"]][:2] == ["name", "wing"]
    for words in (("fit", "birds.csv", "--model", "m"), ("compare", "birds.csv", "--label=kind")):
        assert kpca(*words, "--dry-run").code == 0
    assert sorted(folder.iterdir()) == before


def test_fit_score_explain(kpca: Run) -> None:
    fitted = kpca("fit", "clean.csv", "--model", "clean.kpca", "--id", "name")
    assert (fitted.code, fitted.out) == (0, "clean.kpca\n")
    assert "The model holds rows of clean.csv" in fitted.err
    assert "About 5 % of new rows like the reference" in fitted.heard

    kpca("score", "clean.kpca", "birds.csv", "--fdr", 0.2, "--label", "kind").ok()
    run = result()
    assert (run["threshold"]["rule"], run["threshold"]["setting"]) == ("fdr", 0.2)
    top = run["ranked"][0]
    assert top["id"] in ("bird 0057", "bird 0058", "bird 0059")
    assert not Path("kpca-novelty-birds/model.kpca").exists()

    refused = kpca("explain", "clean.kpca", "birds.csv", "--id", top["id"])
    assert_refused(refused, 2, f"--id names a column, --row '{top['id']}' a row")
    row = kpca("explain", "clean.kpca", "birds.csv", "--row", top["id"])
    assert row.code == 0
    assert row.out.startswith(f"Row {top['row']} ({top['id']}), line {top['line']}: p-value 0.0")
    assert row.out.splitlines()[2].split()[1] == top["reasons"][0]["column"]
    by_line = kpca("explain", "clean.kpca", "birds.csv", "--line", top["line"], "--json")
    assert json.loads(by_line.out)["score"] == top["score"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--share", 0.1), "flags by share 0.1; the threshold is set on each table scored"),
        (("--fdr", 0.1), "flags by fdr 0.1; the threshold is set on each table scored"),
        (("--alpha", 0.001), "Nothing can be flagged at 0.1 %: 80 reference rows allow 1.2 %"),
    ],
)
def test_fit_names_a_threshold_only_where_its_rule_sets_one(
    words: tuple[object, ...], message: str, kpca: Run
) -> None:
    done = kpca("fit", "clean.csv", "--model", "m.kpca", *words)
    assert (done.code, message in done.heard) == (0, True), done.heard
    assert "Threshold" not in done.heard


def test_compare(kpca: Run) -> None:
    done = kpca("compare", "birds.csv", "--label", "kind", "--exclude", "name")
    assert (done.code, done.out) == (0, "kpca-comparison-birds/report.html\n")
    assert "By area under the ROC curve Kernel PCA" in done.heard
    seconds = json.loads(Path("kpca-comparison-birds/run.json").read_text(encoding="utf-8"))
    assert "setting 2: Isolation forest" in seconds["seconds"]
    assert "seconds" not in Path("kpca-comparison-birds/result.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ragged.csv", "a,b\n1,2\n3\n4,5\n", "ragged.csv: line 3 has 1 cell"),
        ("constant.csv", "a\n1\n1\n1\n1\n", "constant.csv: no column is left"),
        (
            "codes.csv",
            "a\nAB-1\nAB-2\nAB-3\nAB-4\n",
            "codes.csv: all rows look equal in the columns used",
        ),
        ("bords.csv", None, 'bords.csv: no such file. Did you mean "birds.csv"'),
    ],
)
def test_bad_tables_are_one_line_and_exit_3(
    name: str, content: str | None, message: str, kpca: Run, folder: Path
) -> None:
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    before = sorted(folder.iterdir())
    for words in (("screen", name), ("fit", name, "--model", "m.kpca")):
        assert_refused(kpca(*words), 3, f"error: {message}")
        assert sorted(folder.iterdir()) == before


def test_an_earlier_run_is_replaced_with_force_only(kpca: Run, folder: Path) -> None:
    kpca("screen", "birds.csv", "--quiet", "--explain", 0)
    run = folder / "kpca-novelty-birds" / "run.json"
    before = run.read_bytes()
    assert_refused(kpca("screen", "birds.csv", "--seed", 1), 4, "--force")
    assert run.read_bytes() == before
    assert kpca("screen", "birds.csv", "--quiet", "--force", "--explain", 0).code == 0
    assert run.read_bytes() != before


def test_an_existing_model_is_replaced_with_force_only(kpca: Run, folder: Path) -> None:
    model = folder / "m.kpca"
    assert kpca("fit", "clean.csv", "--model", "m.kpca", "--seed", 1).code == 0
    before = model.read_bytes()
    assert kpca("fit", "clean.csv", "--model", "m.kpca").code == 4
    assert model.read_bytes() == before
    assert kpca("fit", "clean.csv", "--model", "m.kpca", "--force").code == 0
    assert model.read_bytes() != before
    model.write_bytes(b"precious")
    assert kpca("score", "m.kpca", "birds.csv").code == 3
    assert kpca("fit", "clean.csv", "--model", "no/m.kpca").code == 3


def test_accepted_rows_that_say_nothing_are_refused_before_the_work(kpca: Run) -> None:
    Path("fine.csv").write_text("sort,color\nusual,black\n", encoding="utf-8")
    done = kpca("screen", "birds.csv", "--accept", "fine.csv")
    assert done.code == 3 and not Path("kpca-novelty-birds").exists()
    assert done.err.startswith("error: fine.csv: none of its columns is one of birds.csv")
    assert kpca("screen", "-", "--accept", "-").code == 2
    assert kpca("screen", "birds.csv", "--accept", "nowhere.csv").code == 3


def test_a_screening_loads_no_library_that_it_does_not_use(folder: Path) -> None:
    code = (
        "import sys; from kpca_apps.cli.main import main\n"
        "code = main(['novelty', 'screen', 'birds.csv', '--quiet'])\n"
        "unused = {'sklearn', 'scipy.stats', 'pandas', 'skimage', 'rich', 'dask'}\n"
        "print(code, sorted(unused & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_a_repeated_key_is_reported_with_its_lines(kpca: Run, folder: Path) -> None:
    table = frame_of(300)
    codes = [f"R{10_000 + 7 * number}" for number in range(300)]
    codes[200] = codes[199]
    table.with_columns(invoice=pl.Series(codes)).write_csv("twice.csv")
    heard = kpca("screen", "twice.csv").heard
    assert "same invoice in 298 of 300 rows; not in lines 201, 202." in heard


@pytest.mark.parametrize(
    "words",
    [
        "screen no.csv",
        "screen no-*.csv",
        "screen birds.csv --reference no.csv",
        "screen birds.csv --accept no.csv",
        "screen birds.csv --marks no.html",
        "score no.kpca birds.csv",
        "compare no.csv --label kind",
        "diff no kpca-novelty-birds",
    ],
)
def test_a_missing_input_is_not_taken_for_a_run_that_was_done(
    kpca: Run, folder: Path, words: str
) -> None:
    """A script may use the results after exit code 4, so a missing input must exit differently."""
    (folder / "out").mkdir()
    (folder / "out" / "run.json").touch()
    assert kpca("screen", "birds.csv", "--out", "out").code == 4
    missing = kpca(*words.split(), "--out", "out")
    assert_refused(missing, 3, "no file has such a name" if "*" in words else "no such file")


def test_flagged_rows_fail_a_command_that_asks_for_it(kpca: Run) -> None:
    assert kpca("screen", "birds.csv", "--fail-on-flagged", "--count", 1).code == 6
    assert result()["n_flagged"] == 1
    assert kpca("fit", "clean.csv", "--model", "clean.kpca", "--id", "name").code == 0
    for alpha, code in ((0.05, 6), (1e-3, 0)):
        words = ("score", "clean.kpca", "birds.csv", "--alpha", alpha, "--fail-on-flagged")
        assert kpca(*words, "--out", f"scored-{code}", "--junit", f"{code}.xml").code == code
        assert Path(f"{code}.xml").stat().st_size
    assert kpca("screen", "birds.csv", "--each", "--fail-on-flagged", "--out", "each").code == 6
