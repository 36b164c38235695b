"""Tests of kpca novelty rules."""

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.cli.novelty.junit import RuleCase, write_junit
from kpca_apps.novelty.relations.rule_file import read_rules
from kpca_apps.tables.opening import open_table
from tests.cli.conftest import Run, assert_refused
from tests.novelty.relations.test_table_rules import orders


@pytest.fixture
def invoices(folder: Path) -> Path:
    """Write three tables; the first has a wrong sum on line 9 and an early date on line 12."""
    orders().write_csv("invoices.csv")
    more = orders(seed=1).head(60)
    more.with_columns(net=pl.col("net") + (pl.col("order") == more["order"][4])).write_csv(
        "more.csv"
    )
    orders(seed=2).filter(~pl.int_range(300).is_in([7, 10])).write_csv("good.csv")
    return folder


def test_rules_are_printed_with_the_lines_that_break_them(invoices: Path, kpca: Run) -> None:
    done = kpca("rules", "invoices.csv")
    assert done.code == 0
    lines = done.out.splitlines()
    assert "gross = net + tax in 299 of 300 rows; not in line 9" in lines
    assert "ordered <= shipped in 299 of 300 rows; not in line 12" in lines
    assert f"{len(lines)} rules hold in nearly all of the 300 rows of invoices.csv." in done.err
    assert max(map(len, [*lines, *done.err.splitlines()])) <= 80
    assert not [path for path in invoices.iterdir() if path.suffix != ".csv"]


def test_rules_are_checked_on_another_table(invoices: Path, kpca: Run) -> None:
    done = kpca("rules", "invoices.csv", "--out", "rules.json")
    assert (done.code, done.out) == (0, "rules.json\n")
    assert len(read_rules("rules.json").rules) > 2
    done = kpca("rules", "more.csv", "--rules", "rules.json")
    net, tax, gross, order = orders(seed=1)["net", "tax", "gross", "order"].row(4)
    assert done.code == 5
    assert f"gross = net + tax: broken in 2 of 60 rows\n  line 6 ({order}): " in done.out
    assert f"gross {gross}, net {net + 1}, tax {tax}\n" in done.out
    assert "rules of rules.json are broken in more.csv." in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    done = kpca("rules", "good.csv", "--rules", "rules.json", "--quiet")
    assert done == (0, "", "")


def test_written_rules_are_printed_and_unjudged_rows_counted(invoices: Path, kpca: Run) -> None:
    lines = kpca("rules", "invoices.csv").out.splitlines()
    printed = kpca("rules", "invoices.csv", "--out", "rules.json").err.splitlines()
    assert [line for line in printed if line in lines] == lines
    table = pl.read_csv("good.csv").with_row_index("row")
    table = table.with_columns(tax=pl.when(pl.col("row") % 4 > 0).then("tax")).drop("row")
    table.write_csv("lacking.csv")
    done = kpca("rules", "lacking.csv", "--rules", "rules.json")
    n = table["tax"].null_count()
    assert f"Not checked in {n} rows, which lack a value: gross = net + tax\n" in done.err


def test_rules_are_found_in_all_lines_where_the_layout_is_off(invoices: Path, kpca: Run) -> None:
    text = Path("invoices.csv").read_text(encoding="utf-8")
    Path("titled.csv").write_text(f"Invoices of May\n\n{text}", encoding="utf-8")
    stdout = kpca("rules", "invoices.csv", "--quiet").out.splitlines()
    titled = kpca("rules", "titled.csv", "--quiet").out.splitlines()
    assert len(titled) == len(stdout) and any("not in line 11" in line for line in titled)
    assert kpca("rules", "titled.csv", "--layout", "off", "--quiet").code == 3


def test_a_check_is_a_suite_of_test_cases(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    checked = kpca("rules", "more.csv", "--rules", "rules.json", "--junit", "rules.xml")
    screened = kpca("screen", "invoices.csv", "--junit", "screen.xml", "--id", "order")
    assert (checked.code, screened.code) == (5, 0)
    content = json.loads(kpca("rules", "more.csv", "--rules", "rules.json", "--json").out)
    suite = ElementTree.parse("rules.xml").getroot()[0]
    assert suite.get("name") == "more.csv"
    assert [case.get("name") for case in suite] == [rule["says"] for rule in content["rules"]]
    broken = [rule for rule in content["rules"] if rule["n_broken"]]
    assert suite.get("failures") == str(len(broken)) == str(len(suite.findall("*/failure")))
    (sums,) = [case for case in suite if case.get("name") == "gross = net + tax"]
    assert sums[0].get("message") == "broken in 2 of 60 rows"
    assert [line.split(" (")[0] for line in str(sums[0].text).splitlines()] == ["line 6", "line 9"]
    cases = {case.get("name"): case for case in ElementTree.parse("screen.xml").getroot()[0]}
    assert [child.text for child in cases["gross = net + tax"]] == ["line 9"]
    # A file of test cases is replaced only with --force; any other file never is.
    again = kpca("rules", "more.csv", "--rules", "rules.json", "--junit", "rules.xml")
    assert_refused(again, 4, "exists already")
    table = kpca("screen", "invoices.csv", "--junit", "good.csv", "--force")
    assert_refused(table, 4, "never replaced")
    assert_refused(kpca("rules", "good.csv", "--junit", "a.xml"), 2, "name them with --rules")


def test_the_rules_that_are_read_are_not_replaced(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    words = ("rules", "more.csv", "--rules", "rules.json", "--force", "--format", "text")
    assert_refused(kpca(*words, "--out", "./rules.json"), 2, "is the file of rules to check")
    assert read_rules("rules.json").rules
    check = ("rules", "more.csv", "--rules", "rules.json", "--force")
    assert kpca(*check, "--junit", "rules.xml").code == 5


def test_test_cases_replace_no_rules_and_no_results(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    before = Path("rules.json").read_bytes()
    check = ("rules", "more.csv", "--rules", "rules.json", "--force")
    assert_refused(
        kpca(*check, "--junit", "rules.json"), 4, "replaced; choose another file with --junit"
    )
    taken = "--junit is where other results are written; choose another place"
    assert_refused(kpca(*check, "--out", "new.txt", "--junit", "./new.txt"), 2, taken)
    # --junit may not name the results folder of a screening or a file inside, either.
    for path in ("new", "new/rules.xml", "../" + Path.cwd().name + "/new/rules.xml"):
        assert_refused(kpca("screen", "more.csv", "--out", "new", "--junit", path), 2, taken)
    assert Path("rules.json").read_bytes() == before
    assert not [path for path in Path().iterdir() if path.name.startswith("new")]


@given(st.text(max_size=20), st.text(max_size=20))
def test_test_cases_are_xml_whatever_a_table_holds(name: str, rows: str) -> None:
    cases = [RuleCase(name, 5, 1, rows), RuleCase(name, 0, 0)]
    with TemporaryDirectory() as folder:
        write_junit(f"{folder}/rules.xml", name, cases)
        suite = ElementTree.parse(f"{folder}/rules.xml").getroot()[0]
    assert [child.tag for case in suite for child in case] == ["failure", "skipped"]
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["2", "1", "1"]
    if name.isalnum():
        assert suite[0].get("name") == suite.get("name") == name


def test_a_check_as_json(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    done = kpca("rules", "more.csv", "--rules", "rules.json", "--json", "--id", "net")
    content = json.loads(done.out)
    assert (done.code, content["table"], content["n_rows"]) == (5, "more.csv", 60)
    assert content["n_broken_rules"] == sum(rule["n_broken"] > 0 for rule in content["rules"])
    (one,) = [rule for rule in content["rules"] if rule["says"] == "gross = net + tax"]
    assert [row["line"] for row in one["broken"]] == [6, 9]
    assert one["broken"][0]["id"] == str(pl.read_csv("more.csv")["net"][4])


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.json", ""), ("a.sql", ""), ("a.py", ""), ("a.yml", ""), ("a.yaml", ""), ("a", "text")],
)
def test_a_file_is_written_as_its_name_ends(
    invoices: Path, kpca: Run, name: str, format: str
) -> None:
    options = ["--format", format] if format else []
    done = kpca("rules", "invoices.csv", "--out", name, *options)
    assert (done.code, done.out) == (0, f"{name}\n")
    text = Path(name).read_text("utf-8")
    kinds = {"a.json": "json", "a.sql": "sql", "a.py": "pandera", "a": "text"}
    printed = kpca("rules", "invoices.csv", "--format", kinds.get(name, "dqx"), "-q")
    assert text.endswith(printed.out)
    if name == "a":
        assert text.startswith("Rules between the columns of invoices.csv\n\n")
    # Writing the file again needs --force; any file without rules is never replaced.
    again = kpca("rules", "invoices.csv", "--out", name, *options)
    assert_refused(again, 4, "exists already; replace it with --force")
    assert kpca("rules", "invoices.csv", "--out", name, "--force", *options).code == 0
    assert Path(name).read_text("utf-8") == text
    table = kpca("rules", "invoices.csv", "--out", "good.csv", "--force")
    assert_refused(table, 4, "is not a file of rules, so it is never replaced")


def test_the_rules_of_a_file_are_exported_too(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    rules = json.loads(Path("rules.json").read_text("utf-8"))
    rules["rules"] = [rule for rule in rules["rules"] if rule["says"].startswith("gross")]
    Path("mine.json").write_text(json.dumps(rules), encoding="utf-8")
    done = kpca("rules", "good.csv", "--rules", "mine.json", "--format", "dqx")
    assert done.code == 0
    assert [check["name"] for check in yaml.safe_load(done.out)] == ["gross = net + tax"]
    done = kpca("rules", "more.csv", "--rules", "mine.json", "--format", "sql")
    assert done.code == 5
    assert '-- gross = net + tax in 58 of 60 rows\nSELECT * FROM "more"\n' in done.out


def test_json_of_what_is_found_is_the_file(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json")
    done = kpca("rules", "invoices.csv", "--json", "--out", "a.sql")
    assert json.loads(done.out) == json.loads(Path("rules.json").read_text("utf-8"))
    assert Path("a.sql").read_text("utf-8").startswith("-- Rules between the columns of")


def test_columns_are_used_as_requested(invoices: Path, kpca: Run) -> None:
    done = kpca("rules", "invoices.csv", "--exclude", "gross", "--seed", "3", "--jobs", "1")
    assert "ordered <= shipped" in done.out and "gross" not in done.out
    assert "gross = net" not in kpca("rules", "invoices.csv", "--categorical", "gross").out
    numeric = kpca("rules", "invoices.csv", "--numeric", "net", "--dayfirst")
    assert "gross = net + tax" in numeric.out


def test_how_the_file_is_read(invoices: Path, kpca: Run) -> None:
    lines = Path("invoices.csv").read_text("utf-8").replace(",", ";").splitlines(keepends=True)
    lines[4] = "1;2\n"
    Path("x.txt").write_bytes("".join(["Titel\n", "\n", *lines]).encode("utf-16"))
    words = ("--delimiter", ";", "--encoding", "utf-16", "--skip-rows", 2, "--bad-lines", "skip")
    done = kpca("rules", "x.txt", *words)
    assert "gross = net + tax in 298 of 299 rows; not in line 11" in done.out.splitlines()
    pl.read_csv("invoices.csv").write_excel("x.xlsx", worksheet="May")
    done = kpca("rules", "x.xlsx", "--sheet", "May")
    assert "gross = net + tax in 299 of 300 rows; not in line 9" in done.out.splitlines()
    pl.read_csv("invoices.csv").write_parquet("x.parquet")
    done = kpca("rules", "x.parquet")
    assert "gross = net + tax in 299 of 300 rows; not in row 8" in done.out.splitlines()


def test_a_dry_run_prints_how_columns_are_read(invoices: Path, kpca: Run) -> None:
    done = kpca("rules", "invoices.csv", "--dry-run", "--out", "rules.json")
    assert done.code == 0 and done.out.startswith("column ") and "taken as" in done.out
    assert not Path("rules.json").exists()
    kpca("rules", "invoices.csv", "--out", "rules.json")
    done = kpca("rules", "more.csv", "--rules", "rules.json", "--dry-run")
    assert done.code == 0
    assert "shipped  dates" in done.out and "gross    numbers" in done.out


def test_a_large_table_is_read_in_parts(
    invoices: Path, kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kpca("rules", "invoices.csv", "--out", "rules.json")
    once = kpca("rules", "more.csv", "--rules", "rules.json")
    done = kpca("rules", "invoices.csv")
    small = partial(open_table, in_memory_rows=50, part_rows=32)
    monkeypatch.setattr("kpca_apps.cli.novelty.run.open_table", small)
    assert kpca("rules", "more.csv", "--rules", "rules.json", "--jobs", "2") == once
    assert kpca("rules", "invoices.csv", "--jobs", "2") == done
    assert whole.code == 0


def test_files_of_one_table_are_distinguished(invoices: Path, kpca: Run) -> None:
    done = kpca("rules", "invoices.csv", "more.csv")
    files = "line 9 of invoices.csv, line 6 of more.csv, line 9 of more.csv"
    assert f"gross = net + tax in 357 of 360 rows; not in {files}" in " ".join(done.out.split())


def secret_table() -> pl.DataFrame:
    """Return a table whose rules would quote values of its columns."""
    frame = orders()
    sex = pl.Series(["QZfem", "QZmal", "QZmal"] * 100)
    return frame.with_columns(
        sex=sex,
        births=pl.when(sex == "QZfem").then(pl.col("net") % 5 + 1),
        patient=pl.format("XQ{}", pl.int_range(300) * 7 + 1000),
    )


@pytest.mark.parametrize("format", ["text", "json", "sql", "pandera", "dqx"])
def test_hidden_values_are_in_no_byte(invoices: Path, kpca: Run, format: str) -> None:
    frame = secret_table()
    frame.write_csv("secret.csv")
    frame.with_columns(births=2, patient=pl.lit("XQ1007")).write_csv("worse.csv")
    shown = kpca("rules", "secret.csv", "--format", format)
    hide = [word for name in ("sex", "patient") for word in ("--hide", name)]
    done = kpca("rules", "secret.csv", "--format", format, *hide)
    if format != "pandera":  # pandera schemas quote no value, so nothing is hidden
        assert "QZ" in shown.out
    kpca("rules", "secret.csv", "--out", "open.json")
    checked = kpca("rules", "worse.csv", "--rules", "open.json", "--format", format, *hide)
    as_json = kpca("rules", "worse.csv", "--rules", "open.json", "--json", *hide)
    assert (done.code, checked.code, as_json.code) == (0, 5, 5)
    for run in (done, checked, as_json):
        assert not any(word in run.out + run.err for word in ("QZ", "XQ1"))
    assert "left out for quoting values of hidden columns" in done.heard
    assert "(hidden)" in as_json.out


def test_mistakes_are_reported_in_one_line(invoices: Path, kpca: Run) -> None:
    kpca("rules", "invoices.csv", "--out", "rules.json", "--exclude", "order")
    lacking = kpca("rules", "birds.csv", "--rules", "rules.json")
    assert_refused(lacking, 3, 'birds.csv: has no column "')
    folder = kpca("rules", "invoices.csv", "--out", ".")
    assert_refused(folder, 4, "is not a file of rules, so it is never replaced")


def test_a_table_without_rules_says_so(folder: Path, kpca: Run) -> None:
    pl.DataFrame({"a": [(7919 * k) % 101 / 7 for k in range(60)]}).write_csv("one.csv")
    done = kpca("rules", "one.csv")
    assert (done.code, done.out) == (0, "")
    assert "No rule holds in nearly all of the 60 rows of one.csv." in done.err
    assert kpca("rules", "one.csv", "--out", "none.json").code == 0
    checked = kpca("rules", "one.csv", "--rules", "none.json")
    assert checked.code == 0 and "0 of 0 rules of none.json are broken in one.csv." in checked.err


def test_a_table_whose_only_rule_is_hidden_says_so(folder: Path, kpca: Run) -> None:
    net = pl.Series([10 + k * k % 1009 / 100 for k in range(1500)])
    pl.DataFrame({"net": net, "gross": (1.2 * net).round(3)}).write_csv("two.csv")
    assert "1 rule holds" in kpca("rules", "two.csv").err
    assert "No rule without hidden values holds" in kpca("rules", "two.csv", "--hide", "net").err
