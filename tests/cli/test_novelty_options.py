from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kpca_apps.cli.main import app
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.options import NoveltyOptions
from tests.cli.conftest import Run

SCREEN: Any = get_command(app).commands["novelty"].commands["screen"]


def result(folder: str = "kpca-novelty-birds") -> dict[str, object]:
    loaded: dict[str, object] = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
    return loaded


TOLD_OF_THE_MODEL = {
    "--share 0.2": {"share": 0.2},
    "--count 7": {"count": 7},
    "--alpha 0.1": {"alpha": 0.1},
    "--fdr 0.3": {"fdr": 0.3},
    "--explain 9": {"explain": 9},
    "--kernel linear": {"kernel": "linear"},
    "--kernel rbf --gamma 0.25": {"kernel": "rbf", "gamma": 0.25},
    "--kernel rbf --sigma 1.5": {"kernel": "rbf", "sigma": 1.5},
    "--components 3": {"n_components": 3},
    "--ridge 0.01": {"ridge": 0.01},
    "--landmarks 12": {"n_landmarks": 12},
    "--calibration split": {"calibration": "split"},
    "--seed 4": {"seed": 4},
    "--jobs 2": {"jobs": 2},
}
TOLD_OF_COLUMNS = {
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
# Of the table, the work and the files; not of what is found.
OTHERS = (
    "--reference --accept --workers --scheduler --out --force --format --keep-hidden --flagged "
    "--delimiter --encoding --sheet --skip-rows --bad-lines --json --quiet --dry-run --config"
)


def told_by(words: str) -> ScreeningOptions:
    params = SCREEN.make_context("screen", ["t.csv", *words.split()]).params
    names = params.keys() - {"table", "reference", "help_all"}
    return ScreeningOptions.of(NoveltyOptions(**{name: params[name] for name in names}))


def test_every_option_reaches_the_application() -> None:
    for words, model in TOLD_OF_THE_MODEL.items():
        assert told_by(words) == ScreeningOptions(**model), words
    for words, columns in TOLD_OF_COLUMNS.items():
        assert told_by(words) == ScreeningOptions(columns=ColumnOptions(**columns)), words
    labelled = ScreeningOptions(positive="red", columns=ColumnOptions(label="colour"))
    assert told_by(LABEL) == labelled
    tried = " ".join([*TOLD_OF_THE_MODEL, *TOLD_OF_COLUMNS, LABEL, OTHERS])
    own = [one for one in SCREEN.params if one.name != "help_all"]
    flags = [flag for one in own for flag in (*one.opts, *one.secondary_opts)]
    assert {flag for flag in flags if flag.startswith("--")} == {
        word for word in tried.split() if word.startswith("--")
    }


def test_a_configuration_file_gives_options_and_the_command_line_wins(kpca: Run) -> None:
    config = 'count = 4\nid = "name"\nexclude = ["colour", "kind"]\ndayfirst = true\n'
    Path("run.toml").write_text(config, encoding="utf-8")
    assert kpca("screen", "birds.csv", "--config", "run.toml", "--quiet").code == 0
    found = result()
    assert found["settings"]["count"] == 4  # type: ignore[index]
    told = shlex.split(str(found["command"]))
    assert told[:4] == ["kpca", "novelty", "screen", "birds.csv"]
    assert (told.count("--exclude"), told.count("--dayfirst")) == (2, 1)
    words = ("birds.csv", "--config", "run.toml", "--count", 2, "--force", "--quiet")
    assert kpca("screen", *words).code == 0
    assert result()["settings"]["count"] == 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("shaer = 0.1", 2, "no option 'shaer' in kpca novelty screen; .* Did you mean \"share\""),
        ("share = ", 3, "not valid TOML"),
        ('share = "many"', 2, "Invalid value for '--share'"),
        ('hide = "mass"', 2, r'run.toml: hide is mass; give a list, as in hide = \["..."\]'),
        ('hide = [["mass"]]', 2, "run.toml: hide is .*; give one value, or a list of them"),
        ("share = [0.1]", 2, "run.toml: share is .*; give one value"),
        ("share = true", 2, "run.toml: share is True; give a value, not true or false"),
        ("quiet = 1", 2, "run.toml: quiet is 1; give true or false"),
        ("share = 0.1\ncount = 3", 2, "--share and --count exclude each other"),
        (None, 3, "cannot be read"),
    ],
)
def test_bad_configuration_files_are_one_line(
    content: str | None, code: int, message: str, kpca: Run
) -> None:
    if content is not None:
        Path("run.toml").write_text(content, encoding="utf-8")
    done = kpca("screen", "birds.csv", "--config", "run.toml")
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert re.search(message, done.err)


@pytest.mark.release
def test_the_command_of_a_report_gives_the_same_report(
    whole_kpca: Run, folder: Path, request: pytest.FixtureRequest
) -> None:
    words = ("--share", "0.05", "--hide", "mass", "--exclude", "kind", "--seed", 5, "--format=csv")
    done = whole_kpca("screen", folder / "birds.csv", *words, "--out", "first", "--jobs", 2, "-q")
    assert done.code == 0, done.err
    command = shlex.split(str(result("first")["command"]))
    assert command[:2] == ["kpca", "novelty"]
    assert str(folder) not in Path("first", "report.html").read_text(encoding="utf-8")
    names = ("report.html", "result.json", "scored.csv", "model.kpca", "figures/map.png")
    before = {name: Path("first", name).read_bytes() for name in names}
    assert whole_kpca(*command[2:], "--quiet").code == 0
    assert before == {name: Path("first", name).read_bytes() for name in names}
    request.getfixturevalue("undrawn")
    words = [word for word in command[2:] if word not in ("--out", "first")]
    assert whole_kpca(*words, "--out", "second", "--quiet").code == 0
    for name in ("scored.csv", "model.kpca"):
        assert before[name] == Path("second", name).read_bytes(), name
    told = {**result("second"), "command": "", "next_steps": []}
    assert told == {**result("first"), "command": "", "next_steps": []}
