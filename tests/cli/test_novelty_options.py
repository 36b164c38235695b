import json
import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import xlsxwriter
from typer.main import get_command

from kpca_apps.cli.main import app
from kpca_apps.cli.options import UsageError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.options import NoveltyOptions
from tests.cli.conftest import Done, Run, assert_refused, result

SCREEN: Any = get_command(app).commands["novelty"].commands["screen"]


MODEL_OPTIONS = {
    "--share 0.2": {"share": 0.2},
    "--count 7": {"count": 7},
    "--alpha 0.1": {"alpha": 0.1},
    "--fdr 0.3": {"fdr": 0.3},
    "--explain 9": {"explain": 9},
    "--method hoffmann --sigma 1.5": {"method": "hoffmann", "sigma": 1.5},
    "--method hoffmann --components 3": {"method": "hoffmann", "components": 3},
    "--method hoffmann --components .9": {"method": "hoffmann", "components": 0.9},
    "--ridge 0.01": {"ridge": 0.01},
    "--landmarks 12": {"n_landmarks": 12},
    "--calibration split": {"calibration": "split"},
    "--learn-from all": {"learn_from": "all"},
    "--seed 4": {"seed": 4},
    "--jobs 2": {"jobs": 2},
}
COLUMN_OPTIONS = {
    "--id name": {"id": "name"},
    "--exclude kind --exclude mass": {"exclude": ("kind", "mass")},
    "--categorical kind": {"categorical": ("kind",)},
    "--numeric mass": {"numeric": ("mass",)},
    "--by kind --by colour": {"by": ("kind", "colour")},
    "--hide mass": {"hide": ("mass",)},
    "--dayfirst": {"dayfirst": True},
    "--monthfirst": {"dayfirst": False},
}
LABEL = "--label colour --positive red"
# Options for the table, the workers and the files, which do not change the scores.
OTHERS = (
    "--reference --accept --marks --workers --scheduler --work-dir --out --force --each "
    "--to-send --format --keep-hidden --flagged --write-to --junit --fail-on-flagged "
    "--delimiter --encoding --sheet --skip-rows --bad-lines --layout --as-of "
    "--query --table --timeout --json --quiet --dry-run --config"
)


def options_of(words: str) -> ScreeningOptions:
    params = SCREEN.make_context("screen", ["t.csv", *words.split()]).params
    names = params.keys() - {"table", "reference"}
    return ScreeningOptions.of(NoveltyOptions(**{name: params[name] for name in names}))


def test_every_option_reaches_the_application() -> None:
    for words, model in MODEL_OPTIONS.items():
        assert options_of(words) == ScreeningOptions(**model), words
    for words, columns in COLUMN_OPTIONS.items():
        assert options_of(words) == ScreeningOptions(columns=ColumnOptions(**columns)), words
    labelled = ScreeningOptions(positive="red", columns=ColumnOptions(label="colour"))
    assert options_of(LABEL) == labelled
    tried = " ".join([*MODEL_OPTIONS, *COLUMN_OPTIONS, LABEL, OTHERS])
    flags = [flag for option in SCREEN.params for flag in (*option.opts, *option.secondary_opts)]
    assert {flag for flag in flags if flag.startswith("--")} == {
        word for word in tried.split() if word.startswith("--")
    }


@pytest.mark.parametrize("components", ["1.0", "2.0", "1.5", "nan"])
def test_components_are_a_whole_number_or_a_share_below_1(components: str) -> None:
    with pytest.raises(UsageError, match="neither a whole number nor a share below 1"):
        options_of(f"--method hoffmann --components {components}")


def test_a_configuration_file_gives_options_and_the_command_line_wins(kpca: Run) -> None:
    config = 'count = 4\nid = "name"\nexclude = ["colour", "kind"]\ndayfirst = true\n'
    Path("run.toml").write_text(config, encoding="utf-8")
    assert kpca("screen", "birds.csv", "--config", "run.toml", "--quiet").code == 0
    run = result()
    assert run["run"]["settings"]["count"] == 4  # type: ignore[index]
    args = shlex.split(str(run["run"]["command"]))
    assert args[:4] == ["kpca", "novelty", "screen", "birds.csv"]
    assert (args.count("--exclude"), args.count("--dayfirst")) == (2, 1)
    words = ("birds.csv", "--config", "run.toml", "--count", 2, "--force", "--quiet")
    assert kpca("screen", *words).code == 0
    assert result()["run"]["settings"]["count"] == 2  # type: ignore[index]


def test_the_command_line_replaces_a_threshold_of_a_configuration_and_adds_to_what_it_hides(
    kpca: Run,
) -> None:
    Path("run.toml").write_text('share = 0.1\nhide = ["mass"]\n', encoding="utf-8")
    words = ("birds.csv", "--config", "run.toml", "--count", 2, "--hide", "colour", "--quiet")
    assert kpca("screen", *words).code == 0
    assert result()["run"]["settings"]["count"] == 2  # type: ignore[index]
    command = "kpca novelty screen birds.csv --count 2 --hide mass --hide colour"
    assert str(result()["run"]["command"]).startswith(command)
    # A column name that is a number needs no quotes.
    Path("run.toml").write_text("share = 0.1\nhide = [2024]\n", encoding="utf-8")
    pl.read_csv("birds.csv").rename({"mass": "2024"}).write_csv("of_years.csv")
    words = ("of_years.csv", "--config", "run.toml", "--hide", "colour", "--quiet")
    assert kpca("screen", *words, "--out", "years").code == 0
    assert "--hide 2024 --hide colour" in Path("years/result.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ('hide = "mass"', 2, r'run.toml: hide is .mass.; give a list, as in hide = \["..."\]'),
        ('hide = [["mass"]]', 2, "run.toml: hide is .*; give one value, or a list of them"),
        ("share = [0.1]", 2, "run.toml: share is .*; give one value"),
        ("share = true", 2, "run.toml: share is True; give a value, not true or false"),
        ("quiet = 1", 2, "run.toml: quiet is 1; give true or false"),
        ('encoding = "a\\u0000b"', 2, r'error: run.toml: --encoding "a\\x00b" is not known'),
        ("exclude = [true]", 2, r"run.toml: exclude is \[True\]; give names, not true or false"),
        ("share = 5.0", 2, "error: run.toml: --share must be above 0 and below 1, got 5"),
        ('method = "foo"', 2, "error: run.toml: .*'--method'.*'foo' is not one of"),
        ("seed = nan", 2, "error: run.toml: .*'--seed'"),
        ("hide = ['x']", 2, 'error: run.toml: birds.csv: --hide names a column "x"'),
        ('scheduler = "tcp://ada:ROSEBUD@h:1"', 2, "error: run.toml: an address holds a password"),
        ("count = " + "9" * 5000, 3, "options must be TOML"),
        ("a = " + "[" * 5000, 3, "options must be TOML"),
        ("a = \x00", 3, "UTF-16 without a byte-order mark: save it as UTF-8"),
        ('label = "\\udfff"', 3, "options must be TOML"),
        ("/dev/zero", 3, "must be a plain file of less than 1 MB"),
    ],
)
def test_bad_configuration_files_are_one_line(
    content: str, code: int, message: str, kpca: Run
) -> None:
    path = content if content == "/dev/zero" else "run.toml"
    if path != content:
        Path(path).write_text(content, encoding="utf-8")
    done = kpca("screen", "birds.csv", "--config", path)
    assert_refused(done, code, "")
    assert re.search(message, done.err) and "ROSEBUD" not in done.err


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_configuration_files_as_windows_writes_them_are_read(encoding: str, kpca: Run) -> None:
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    text = f'{mark}share = 0.1\r\nid = "größe"\r\n'
    Path("run.toml").write_bytes(text.encode(encoding))
    done = kpca("screen", "birds.csv", "--config", "run.toml", "--dry-run")
    if encoding == "cp1252":
        assert (
            done.err
            == "error: run.toml: line 2, byte 22 (0xf6) is not utf-8 text; save the "
            + ("file as UTF-8.\n")
        )
    else:
        assert 'birds.csv: --id names a column "größe"' in done.err


@pytest.mark.release
def test_the_command_of_a_report_gives_the_same_report(whole_kpca: Run, folder: Path) -> None:
    words = ("--share", "0.05", "--hide", "mass", "--exclude", "kind", "--seed", 5, "--format=csv")
    done = whole_kpca("screen", folder / "birds.csv", *words, "--out", "first", "--jobs", 2, "-q")
    assert done.code == 0, done.err
    command = shlex.split(str(result("first")["run"]["command"]))
    assert command[:2] == ["kpca", "novelty"]
    assert str(folder) not in Path("first", "report.html").read_text(encoding="utf-8")
    names = ("report.html", "result.json", "scored.csv", "model.kpca", "figures/map.png")
    before = {name: Path("first", name).read_bytes() for name in names}
    assert whole_kpca(*command[2:], "--quiet").code == 0
    assert before == {name: Path("first", name).read_bytes() for name in names}


def _novelty(kpca: Run, command: str, table: str, *words: object) -> Done:
    """Run a command with options; after `fit`, score the table with the model."""
    if command == "fit":
        fitted = kpca("fit", table, "--model", "m.kpca", "--force", *words)
        return fitted if fitted.code else kpca("score", "m.kpca", "birds.csv", *RUN)
    label = ("--label", "kind", "--positive", "odd") if command == "compare" else ()
    return kpca(command, table, *label, *RUN, *words)


RUN = ("--out", "out", "--force", "--json")


@pytest.mark.parametrize("command", ["screen", "fit", "score", "explain", "compare"])
def test_a_sheet_below_titles_is_read_by_every_command(command: str, kpca: Run) -> None:
    # A workbook stores only 15 digits, so round the numbers.
    frame = pl.read_csv("birds.csv").with_columns(pl.selectors.float().round(3))
    frame.write_csv("birds.csv")
    with xlsxwriter.Workbook("book.xlsx") as book:
        book.add_worksheet("notes").write("A1", "see the other sheet")
        sheet = book.add_worksheet("birds")
        for number, row in enumerate(
            [["counted by hand"], ["a,b", "c"], frame.columns, *frame.rows()]
        ):
            sheet.write_row(number, 0, row)
    Path("titled.csv").write_text(f"counted by hand\na,b,c\n{Path('birds.csv').read_text()}9,9\n")
    assert kpca("fit", "clean.csv", "--model", "m.kpca").code == 0
    results = []
    for table, words in (
        ("birds.csv", ()),
        ("book.xlsx", ("--sheet", "birds", "--skip-rows", 2)),
        ("titled.csv", ("--skip-rows", 2, "--bad-lines", "skip", "--layout", "off")),
    ):
        if command == "score":
            done = kpca("score", "m.kpca", table, *RUN, *words)
        elif command == "explain":
            done = kpca("explain", "m.kpca", table, "--row", 7, "--json", *words)
        else:
            done = _novelty(kpca, command, table, *words)
        assert done.code == 0, done.err
        results.append(json.loads(done.out))
    plain = _numbers(results[0])
    assert plain and _numbers(results[1]) == plain == _numbers(results[2])


def _numbers(result: dict[str, Any]) -> list[Any]:
    """Return the scores, reasons and metrics of methods that a result contains."""
    names = ("scores", "score", "novelty_score", "reasons", "evaluations", "detectors", "methods")
    return [result[name] for name in names if name in result]


@pytest.mark.parametrize("command", ["screen", "fit", "compare"])
def test_options_of_the_model_reach_it(command: str, kpca: Run) -> None:
    pl.read_csv("birds.csv").with_columns(
        grade=pl.int_range(60) % 4 + 1, day=pl.format("0{}/03/2024", pl.int_range(60) % 9 + 1)
    ).write_csv("birds.csv")
    words = ("--landmarks", 20, "--ridge", 0.5, "--categorical", "grade", "--dayfirst")
    plain, other = (
        json.loads(_novelty(kpca, command, "birds.csv", *given).out) for given in ((), words)
    )
    roles = [{one["name"]: one["role"] for one in result["columns"]} for result in (plain, other)]
    assert [role["grade"] for role in roles] == ["numeric", "categorical"]
    if command == "compare":  # the evaluations show the effect of the options
        assert other["evaluations"] != plain["evaluations"]
    else:
        assert other["run"]["settings"]["landmarks"] == 20 < plain["run"]["settings"]["landmarks"]
        assert (
            other["run"]["settings"]["ridge (absolute)"]
            > plain["run"]["settings"]["ridge (absolute)"]
        )


def test_calibration_and_groups_are_kept_by_a_model(kpca: Run) -> None:
    pl.concat([pl.read_csv("clean.csv")] * 2).write_csv("clean.csv")  # 50 rows of each colour
    words = ("--calibration", "split", "--by", "colour")
    done = _novelty(kpca, "fit", "clean.csv", *words).ok()
    assert json.loads(done.out)["run"]["settings"]["calibration"] == "split"
    screened = kpca("screen", "birds.csv", "--reference", "clean.csv", *RUN, *words)
    assert json.loads(screened.out)["run"]["settings"]["calibration"] == "split"


def test_a_model_lays_out_later_files_as_its_own(kpca: Run) -> None:
    """The model or --layout decides whether lines are left out; the file decides which lines."""
    names, *rows = Path("birds.csv").read_text().splitlines()
    pages = [line for start in range(0, 60, 20) for line in (names, *rows[start : start + 20])]
    commas = "," * names.count(",")
    Path("pages.csv").write_text("\n".join([f"May{commas}", *pages]) + "\n")
    assert kpca("fit", "clean.csv", "--model", "auto.kpca").code == 0
    assert kpca("fit", "clean.csv", "--model", "off.kpca", "--layout", "off").code == 0
    frames = {}
    for table, model, words in (
        ("birds.csv", "auto.kpca", ()),
        ("pages.csv", "auto.kpca", ()),
        ("pages.csv", "off.kpca", ("--layout", "auto")),
    ):
        done = kpca("score", model, table, *RUN, *words).ok()
        assert ("lines 1 (title" in done.heard) == (table == "pages.csv")
        frames[table, model] = pl.read_csv("out/scored.csv")["novelty_score"].to_list()
    assert len({tuple(scores) for scores in frames.values()}) == 1
    done = kpca("score", "off.kpca", "pages.csv", *RUN)
    assert_refused(done, 3, "is missing, which the model uses")
    # A row is looked up by its line in the file, which also counts the title and the headers.
    for row in (1, 21, 60):
        line = row + 2 + (row - 1) // 20
        found = [
            json.loads(kpca("explain", "auto.kpca", "pages.csv", *words, "--json").out)
            for words in (("--line", line), ("--row", rows[row - 1].split(",")[0]))
        ]
        assert found[0] == found[1] and found[0]["line"] == line and found[0]["row"] == row
    done = kpca("explain", "auto.kpca", "pages.csv", "--line", 23)
    assert_refused(done, 3, "no row starts on line 23")


def test_a_wrong_cell_among_totals_is_flagged_by_its_line(kpca: Run) -> None:
    """The totals exceed every cell, but are left out as not data."""
    lines = ["Region,Month,Orders,Revenue"]
    for block, region in enumerate(("North", "South", "East", "West")):
        orders = [80 + (7 * n + 11 * block) % 40 for n in range(24)]
        revenue = [50 * n + (n * 37) % 400 for n in orders]
        revenue[9] *= 10 if region == "East" else 1
        for n, cells in enumerate(zip(orders, revenue, strict=True)):
            lines.append(f"{'' if n else region},2024-{n:02},{cells[0]},{cells[1]}")
        lines.append(f"Total {region},,{sum(orders)},{sum(revenue)}")
    Path("pivot.csv").write_text("\n".join([*lines, "Grand Total,,,"]) + "\n")
    done = kpca("screen", "pivot.csv", *RUN).ok()
    (flagged,) = pl.read_csv("out/flagged.csv").rows(named=True)
    assert (flagged["line"], flagged["Region"], flagged["reason_column"]) == (61, "East", "Revenue")
    assert "lines 26, 51, 76, 101-102 (5 totals); --layout off" in done.heard
    assert 'in "Region", into 92 empty cells' in done.heard
