"""Values of hidden columns are in nothing that a run writes or prints, except the model."""

import io
import json
import re
import shlex
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.report.drawing import to_svg
from tests.cli.conftest import Run
from tests.quick import quick

N_ROWS, N_ODD = 132, 6
# Patterns of each column's values, which also match expected values, medians and axis labels.
SECRETS = {
    "patient": r"XQ\d{4}",
    "site": "QZsite",
    "visit": r"18[89]\d-|-2[4-6]\d{8}",
    "dose": r"(?<![\w.])-?7[,']?65\d|7\.65\d*e|QZdose",
    "grade": "QZgrade",
    "remark": "qzword",
}
HIDE = tuple(word for name in SECRETS for word in ("--hide", name))
KINDS = ("csv", "parquet", "arrow", "jsonl", "json", "xlsx")


def frame(seed: int = 0, *, odd: int = N_ODD) -> pl.DataFrame:
    """Return rows driven by a latent size, except the last `odd` rows; some columns are secret."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N_ROWS)
    sizes = [size + 0.1 * rng.normal(size=N_ROWS) for _ in range(4)]
    for column in sizes[1:]:
        column[N_ROWS - odd :] = np.where(size[N_ROWS - odd :] > 0, -7.0, 7.0)
    words = np.array(["qzwordone", "qzwordtwo", "qzwordthree", "qzwordfour", "qzwordfive"])
    day = np.datetime64("1889-06-01") + (200 * sizes[2].clip(-5, 5)).astype(int)
    dose = [f"{765_000 + 60 * value:.2f}" for value in sizes[3]]
    dose[3], dose[-1] = "QZdose", "7650000.5"
    grade = np.where(sizes[1] > 0, "QZgradehigh", "QZgradelow").astype(object)
    grade[5] = "QZgradehihg"
    columns = {
        "patient": [f"XQ{(7 * k + seed) % 9000 + 1000:04d}" for k in range(N_ROWS)],
        "site": [("QZsiteA", "QZsiteB")[k % 2] if k % 22 else "QZsiteC" for k in range(N_ROWS)],
        "visit": [str(moment) for moment in day],
        "dose": dose,
        "grade": grade.tolist(),
        "remark": [" ".join(rng.choice(words, 5)) for _ in range(N_ROWS)],
        "wing": (sizes[0] * 10 + 100).round(3),
        "bill": (sizes[1] + 12).round(3),
        "kind": ["odd" if k >= N_ROWS - odd else "usual" for k in range(N_ROWS)],
    }
    if odd:
        for name, cells in columns.items():  # row 8 copies row 7 except for three columns
            if name not in ("patient", "dose", "kind"):
                cells[8] = cells[7]
        columns["visit"][11] = "1889-02-30"  # type: ignore[index]
    return pl.DataFrame(columns)


def write(table: pl.DataFrame, name: str, kind: str) -> str:
    path = f"{name}.{kind}"
    if kind == "jsonl":
        table.write_ndjson(path)
    elif kind == "xlsx":
        table.write_excel(path)
    else:
        writers = {"csv": "csv", "parquet": "parquet", "arrow": "ipc", "json": "json"}
        getattr(table, f"write_{writers[kind]}")(path)
    return path


def texts(*folders: str) -> dict[str, str]:
    """Return everything that runs wrote, as text."""
    outputs = {}
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*")):
        if path.suffix == ".kpca" or path.is_dir():
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet":
            data = pl.read_parquet(io.BytesIO(data)).write_csv().encode()
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(io.BytesIO(data)) as book:
                data = b"\n".join(book.read(name) for name in book.namelist())
        # The figures are SVG source here (see `legible`); remove images that the page embeds.
        text = re.sub(r"data:[\w/+-]+;base64,[\w+/=]+", "", data.decode("utf-8"))
        outputs[str(path)] = text
    return outputs


def leaks(outputs: dict[str, str], names: tuple[str, ...] = tuple(SECRETS)) -> list[str]:
    """Return where values of secret columns appear, with the text around them."""
    return [
        f"{where}: {name}: ...{text[max(match.start() - 60, 0) : match.end() + 30]!r}"
        for where, text in outputs.items()
        for name in names
        for match in [re.search(SECRETS[name], text)]
        if match
    ]


@pytest.fixture
def legible(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write figures as SVG source, which can be searched."""
    monkeypatch.setattr(
        "kpca_apps.report.drawing.to_png", lambda drawing: str(to_svg(drawing)).encode()
    )


@pytest.mark.usefixtures("legible")
def test_without_hide_the_values_of_every_column_are_found(whole_kpca: Run) -> None:
    table = write(frame(), "given", "parquet")
    words = ("--id", "patient", "--count", N_ODD, "--flagged", "xlsx", "--format", "parquet")
    done = whole_kpca("screen", table, *words, "--out", "seen").ok()
    outputs = texts("seen") | {"terminal": done.out + done.err}
    leaking = {line.split(": ")[0]: [] for line in leaks(outputs)}
    for line in leaks(outputs):
        leaking[line.split(": ")[0]].append(line.split(": ")[1])
    assert {*SECRETS} == {*leaking["seen/result.json"]} == {*leaking["seen/scored.parquet"]}
    assert {*SECRETS} == {*leaking["seen/report.html"]} == {*leaking["seen/flagged.xlsx"]}
    assert {"patient", "dose", "visit"} <= {*leaking["terminal"]}
    assert any(where.startswith("seen/figures/") for where in leaking)


def run_all(run: Run, *commands: tuple[object, ...]) -> dict[str, str]:
    """Run commands that must succeed; return what they wrote and printed."""
    terminal = ""
    for words in commands:
        done = run(*words).ok()
        terminal += done.out + done.err
    return texts(
        *{str(words[words.index("--out") + 1]) for words in commands if "--out" in words}
    ) | {"terminal": terminal}


def screened(run: Run, kind: str, hide: tuple[str, ...], *words: object) -> dict[str, str]:
    table = write(frame(), "given", kind)
    return run_all(run, ("screen", table, "--count", N_ODD, *hide, *words, "--out", "seen"))


def by_reference(run: Run, kind: str, hide: tuple[str, ...]) -> dict[str, str]:
    clean = write(frame(1, odd=0).drop("kind"), "clean", kind)
    return screened(run, kind, hide, "--reference", clean, "--id", "patient", "--label", "kind")


def fitted_and_scored(
    run: Run, kind: str, hide: tuple[str, ...], *, by_model: bool
) -> dict[str, str]:
    clean, table = write(frame(1, odd=0), "clean", kind), write(frame(), "given", kind)
    fit = ("fit", clean, "--model", "m.kpca", "--exclude", "kind", "--json")
    of_fit, of_score = (hide, ()) if by_model else ((), hide)
    # A fit that hides nothing may write every value.
    first = run_all(run, (*fit, *of_fit))
    return (first if by_model else {}) | run_all(
        run,
        ("score", "m.kpca", table, "--id", "patient", *of_score, "--out", "seen"),
        ("explain", "m.kpca", table, "--id", "patient", "--row", "130", *of_score),
        ("explain", "m.kpca", table, "--row", "9", *of_score, "--json"),
    )


def diffed(run: Run, kind: str, hide: tuple[str, ...]) -> dict[str, str]:
    tables = write(frame(), "old", kind), write(frame(2), "new", kind)
    for table, words, out in zip(tables, ((), hide), ("first", "second"), strict=True):
        run("screen", table, "--id", "patient", "--count", N_ODD, *words, "--out", out).ok()
    return run_all(run, ("diff", "first", "second", "--out", "seen", "--json"))


WAYS = {
    "screen": screened,
    "screen an id": lambda run, kind, hide: screened(run, kind, hide, "--id", "patient"),
    "screen by": lambda run, kind, hide: screened(run, kind, hide, "--by", "site", "--json"),
    "screen xlsx parquet": lambda run, kind, hide: screened(
        run, kind, hide, "--id", "patient", "--flagged", "xlsx", "--format", "parquet"
    ),
    "reference": by_reference,
    "score": partial(fitted_and_scored, by_model=False),
    "score, model": partial(fitted_and_scored, by_model=True),
    "diff": diffed,
    "screen by labels": lambda run, kind, hide: screened(
        run, kind, hide, "--label", "site", "--positive", "QZsiteC", "--json"
    ),
    "compare by labels": lambda run, kind, hide: run_all(
        run, ("compare", write(frame(), "given", kind), "--label", "site", *hide, "--out", "seen")
    ),
    "compare": lambda run, kind, hide: run_all(
        run, ("compare", write(frame(), "given", kind), "--label", "kind", *hide, "--out", "seen")
    ),
}
PAIRS = list(
    zip(
        WAYS,
        ("csv", "parquet", "csv", "xlsx", "json", "arrow", "parquet", "jsonl", "csv", "csv", "csv"),
        strict=True,
    )
)


CASES = [(way, kind, name) for way in WAYS for kind in KINDS for name in ("", *SECRETS)]


@pytest.mark.parametrize(("way", "kind", "name"), quick(CASES, *((*pair, "") for pair in PAIRS)))
def test_hidden_values_are_in_no_byte(kpca: Run, way: str, kind: str, name: str) -> None:
    hide = ("--hide", name) if name else HIDE
    assert leaks(WAYS[way](kpca, kind, hide), (name,) if name else tuple(SECRETS)) == []


def test_no_picture_shows_a_hidden_value(whole_kpca: Run, legible: None) -> None:
    assert leaks(screened(whole_kpca, "csv", HIDE)) == []


@pytest.mark.usefixtures("small_limit")
def test_hidden_values_of_a_table_in_parts_are_in_no_byte(kpca: Run) -> None:
    assert leaks(screened(kpca, "csv", HIDE, "--id", "patient", "--jobs", 2)) == []
    assert leaks(screened(kpca, "parquet", HIDE, "--format", "parquet", "--force")) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_scored_table_has_hidden_columns_on_request_and_else_their_names(
    kpca: Run, kind: str
) -> None:
    words = ("--format", kind, "--hide", "dose", "--hide", "patient", "--id", "patient")
    table, read = write(frame(), "given", "csv"), getattr(pl, f"read_{kind}")
    assert kpca("screen", table, *words, "--out", "seen").code == 0
    assert kpca("screen", table, *words, "--keep-hidden", "--out", "kept").code == 0
    score = ("score", "seen/model.kpca", table, *words, "--keep-hidden", "--out", "again")
    assert kpca(*score).code == 0
    seen, kept, again = (read(f"{name}/scored.{kind}") for name in ("seen", "kept", "again"))
    assert seen.columns == kept.columns and again["patient"].equals(kept["patient"])
    # Both files keep the order of the input and hold the same findings.
    assert seen.drop("dose", "patient").equals(kept.drop("dose", "patient"))
    assert kept["patient"].to_list() == frame()["patient"].to_list()
    assert seen["dose"].null_count() == seen["patient"].null_count() == N_ROWS
    names = ("result.json", "report.html", "flagged.csv")
    assert leaks({n: Path("kept", n).read_text("utf-8") for n in names}, ("dose", "patient")) == []


def test_rows_of_a_scored_table_without_its_hidden_columns_can_be_accepted(kpca: Run) -> None:
    hide = ("--hide", "dose", "--hide", "patient", "--count", N_ODD)
    table = write(frame(), "given", "csv")
    assert kpca("screen", table, *hide, "--out", "first").code == 0
    pl.read_csv("first/scored.csv").filter(pl.col("rank") <= 2).write_csv("fine.csv")
    done = kpca("screen", table, *hide, "--accept", "fine.csv", "--out", "second")
    assert (done.code, "2 rows are accepted" in done.err) == (0, True), done.err
    done = kpca("score", "first/model.kpca", table, "--accept", "fine.csv", "--out", "third")
    assert (done.code, "2 rows are accepted" in done.err) == (0, True), done.err


def test_errors_cite_no_hidden_value(kpca: Run) -> None:
    table, clean = write(frame(), "given", "csv"), write(frame(1, odd=0), "clean", "parquet")
    twice = frame().with_columns(patient=pl.lit("XQ1234"), dose=pl.lit("QZdose"))
    repeated = write(twice, "twice", "csv")
    model = "m.kpca"
    assert kpca("fit", clean, "--model", model, *HIDE, "--id", "patient").code == 0
    few = frame().with_columns(site=pl.Series([f"QZsite{k % 60}" for k in range(N_ROWS)]))
    errors = {
        "2: none of the 60 groups": ("screen", write(few, "few", "csv"), "--by", "site", *HIDE),
        "3: no row with that": ("explain", model, table, "--row", "XQ0000"),
        "3: 132 cells are not": ("score", model, repeated, "--out", "no"),
        "2: does not contain": ("screen", table, "--label", "site", "--positive", "QZsit", *HIDE),
        "2: name the one that means": ("screen", table, "--label", "dose", *HIDE),
        "3: only one value": ("screen", repeated, "--label", "dose", *HIDE),
    }
    for message, words in errors.items():
        done, (code, text) = kpca(*words), message.split(": ")
        assert done.code == int(code) and text in done.heard, (message, done)
        assert leaks({"terminal": done.out + done.err}) == []


def test_a_model_reports_the_hidden_values_it_contains(kpca: Run) -> None:
    table = write(frame(), "given", "parquet")
    done = kpca("screen", table, "--hide", "patient", "--hide", "dose", "--out", "seen")
    stderr = done.heard
    assert 'holds rows of given.parquet, with values of the hidden column "dose": share' in stderr
    done = kpca("fit", table, "--model", "m.kpca", "--hide", "patient")
    assert "holds rows of given.parquet: share" in done.heard


def test_the_next_command_hides_what_this_one_did(kpca: Run) -> None:
    clean, table = write(frame(1, odd=0), "clean", "parquet"), write(frame(), "given", "parquet")
    assert kpca("fit", clean, "--model", "m.kpca").code == 0
    assert kpca("score", "m.kpca", table, *HIDE, "--id", "patient", "--out", "seen").code == 0
    steps = json.loads(Path("seen/result.json").read_text("utf-8"))["run"]["next_steps"]
    words = next(shlex.split(step) for _, step in steps if " explain " in step)
    done = kpca(*words[2:])
    assert (done.code, words.count("--hide")) == (0, len(SECRETS)), done.err
    assert leaks({"terminal": done.out + done.err, "step": str(steps)}) == []
