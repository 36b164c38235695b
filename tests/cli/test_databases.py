import importlib.util
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import read_table
from tests.cli.conftest import Run, assert_refused, result
from tests.interrupts import HEARS_INTERRUPTS
from tests.novelty.tables import frame_of
from tests.postgres import PASSWORD, Server

FRAME = frame_of(60, odd=3).with_row_index("bird", offset=500).cast({"bird": pl.Int64})
ENDLESS = {
    "sqlite:///shop.db": (
        "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4000000000) "
        "SELECT count(*) AS a FROM r"
    ),
    "duckdb:///shop.duckdb": "SELECT count(*) AS a FROM range(1000000000000) WHERE random() > 2",
}


def fill(connection: Any, types: str) -> None:
    connection.execute(f"CREATE TABLE birds ({types.format(text='TEXT', real='DOUBLE PRECISION')})")
    connection.executemany("INSERT INTO birds VALUES (?, ?, ?, ?, ?, ?, ?)", FRAME.rows())


TYPES = (
    "bird BIGINT PRIMARY KEY, name {text}, wing {real}, bill {real}, mass {real}, colour {text}, "
    "kind {text}"
)


@pytest.fixture
def shop(folder: Path) -> Path:
    """Create an SQLite and a DuckDB database with the same table of birds."""
    with closing(sqlite3.connect("shop.db")) as connection, connection:
        fill(connection, TYPES)
    duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    with closing(duckdb.connect("shop.duckdb")) as connection:
        fill(connection, TYPES)
    return folder


def query(uri: str, sql: str) -> pl.DataFrame:
    return read_table(uri, query=sql).frame


@pytest.mark.parametrize("uri", ENDLESS)
def test_scores_are_written_beside_the_key(uri: str, kpca: Run, shop: Path) -> None:
    words = ("screen", uri, "--table", "birds", "--write-to", "bird scores", "--label", "kind")
    done = kpca(*words, "--out", "out")
    assert done.code == 0 and "The scores of 60 rows are in the table bird scores." in done.err
    scores = query(uri, 'SELECT * FROM "bird scores" ORDER BY row')
    assert scores.columns[:2] == ["row", "bird"] and scores["bird"].equals(FRAME["bird"])
    written = pl.read_csv("out/scored.csv")
    for name in scores.columns[2:]:
        kind = written[name].dtype if scores[name].dtype == pl.Int64 else scores[name].dtype
        expected = written[name].cast(pl.Int64) if kind == pl.Boolean else written[name]
        column = scores[name].cast(pl.Int64) if kind == pl.Boolean else scores[name]
        assert column.cast(expected.dtype).equals(expected), name
    # --force replaces the run's earlier table of scores, but no other table.
    assert_refused(kpca(*words, "--out", "next"), 4, "exists already; replace it with --force")
    assert kpca(*words, "--out", "out", "--force", "--count", 9).code == 0
    assert query(uri, 'SELECT bird FROM "bird scores" WHERE flagged').height == 9
    for name in ("birds", "main.birds"):
        done = kpca("screen", uri, "--table", "birds", "--write-to", name, "--out", "x", "--force")
        assert_refused(done, 4, "exists and holds no scores")
    assert query(uri, "SELECT * FROM birds ORDER BY bird").equals(FRAME)
    assert not Path("x").exists() and not Path("next").exists()


def test_scores_are_written_of_a_table_without_a_key(kpca: Run, shop: Path) -> None:
    words = ("--query", "SELECT bill, wing FROM birds", "--write-to", "keyless")
    kpca("screen", "sqlite:///shop.db", *words, "--out", "out").ok()
    assert query("sqlite:///shop.db", "SELECT * FROM keyless").height == 60


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("PostgreSQL says: shut.", "sqlite:///shop.db"), 3, "shop.db: PostgreSQL says"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_a_failed_write_of_scores_reports_that_the_folder_is_written(
    error: BaseException, code: int, message: str, kpca: Run, shop: Path, monkeypatch: Any
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("kpca_apps.cli.novelty.run.write_rows", fail)
    words = ("--table", "birds", "--write-to", "scores", "--out", "out")
    done = kpca("screen", "sqlite:///shop.db", *words)
    last = done.err.splitlines()[-1]
    assert done.code == code and last.startswith("error: ") and message in last
    assert last.endswith("out is written, and the table is not: run again with --force")
    assert Path("out/report.html").exists()


def test_rules_are_learned_from_a_query(kpca: Run, shop: Path) -> None:
    query = ("--query", "SELECT * FROM birds WHERE bird < 540 ORDER BY bird", "--timeout", 60)
    kpca("rules", "sqlite:///shop.db", *query, "--out", "rules.json").ok()
    assert json.loads(Path("rules.json").read_text())["n_rows"] == 40
    endless = ("--query", ENDLESS["sqlite:///shop.db"], "--timeout", 0.2)
    assert_refused(kpca("rules", "sqlite:///shop.db", *endless), 3, "took longer than the 0.2 s")


@pytest.mark.parametrize("uri", ENDLESS)
def test_the_next_steps_work_as_they_stand(uri: str, kpca: Run, run_kpca: Run, shop: Path) -> None:
    assert kpca("screen", uri, "--query", "SELECT * FROM birds WHERE mass > 0").code == 0
    # All queries share a default folder, which is only replaced with --force.
    other = kpca("screen", uri, "--query", "SELECT * FROM birds WHERE mass > 1")
    assert_refused(other, 4, "kpca-novelty-query-of-shop: exists already; replace it with --force")
    run = result("kpca-novelty-query-of-shop")
    assert shlex.split(run["run"]["command"])[3:] == [
        uri, "--query", "SELECT * FROM birds WHERE mass > 0", "--force",
    ]  # fmt: skip
    steps = [shlex.split(step) for _, step in run["run"]["next_steps"]]
    (explain,) = (step for step in steps if step[2] == "explain")
    assert run_kpca(*explain[1:]).code == 0
    score = ["score", steps[0][3], uri, "--table", "birds", "--out", "scored"]
    assert kpca(*score, "--write-to", "s", "--hide", "bird").code == 0
    assert query(uri, "SELECT * FROM s").columns[0] == "row"
    assert "bird" not in query(uri, "SELECT * FROM s").columns
    absolute = uri.replace(":///", f":///{shop.parent}/{shop.name}/../{shop.name}/")
    assert kpca("screen", f"{absolute}#birds", "--out", "absolute").code == 0
    assert str(shop.parent) not in Path("absolute/result.json").read_text()


def test_a_reference_in_a_database_and_options_that_do_not_fit(kpca: Run, shop: Path) -> None:
    uri = "sqlite:///shop.db"
    reference = ("--reference", f"{uri}#birds", "--exclude", "bird", "--exclude", "kind")
    assert kpca("screen", "birds.csv", *reference, "--out", "a").code == 0
    done = kpca("screen", uri, "--query", "SELECT * FROM birds", "--reference", "birds.csv")
    assert done.code == 0
    for words, code, message in (
        (("screen", uri, uri), 3, "is named twice"),
        (("screen", uri, "birds.csv"), 3, "cannot be one of several"),
        (("screen", "sqlit:///shop.db"), 3, 'Did you mean "sqlite://"'),
        (("screen", "shop.db"), 3, "name it sqlite:///shop.db, and one of its tables"),
        (("screen", "shop.duckdb"), 3, "name it duckdb:///shop.duckdb"),
        (("screen", "duckdb:///shop.db"), 3, "is not a DuckDB database"),
    ):
        assert_refused(kpca(*words), code, message)


@pytest.mark.parametrize(
    ("uri", "extra"), [("duckdb:///shop.duckdb", "duckdb"), ("postgresql:///a", "db")]
)
def test_a_missing_extra_is_named(
    uri: str, extra: str, kpca: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert_refused(kpca("screen", uri), 2, f'pip install ".[{extra}]"')


@pytest.mark.release
def test_a_query_reveals_nothing_hidden_or_not_sent(kpca: Run, shop: Path) -> None:
    words = ("sqlite:///shop.db", "--query", "SELECT * FROM birds WHERE name <> 'QZsecret'")
    assert kpca("screen", *words, "--to-send", "--out", "sent").code == 0
    assert kpca("screen", *words, "--hide", "name", "--out", "out").code == 0
    assert kpca("score", "out/model.kpca", *words, "--out", "new").code == 0
    texts = {
        str(path): path.read_text("utf-8")
        for path in shop.rglob("*")
        if path.suffix in (".html", ".json", ".txt")
    }
    leaks = {path.removeprefix(f"{shop}/") for path in texts if "QZsecret" in texts[path]}
    assert leaks == {"sent/report.html", "sent/result.json"}
    assert (
        "(hidden)" in result("out")["run"]["command"]
        and "(hidden)" in result("new")["run"]["command"]
    )


@pytest.mark.parametrize(
    "words",
    [
        ("novelty", "screen", "postgresql://ada:{}@h/shop"),
        ("novelty", "screen", "birds.csv", "--reference=postgresql://ada:{}@h/shop"),
        ("novelty", "postgresql://ada:{}@h/shop"), ("postgresql://ada:{}@h/shop",),
        ("denoise", "run", "postgresql://ada:{}@h/shop"),
        ("novelty", "screen", "birds.csv", "--config", "secret.toml"),
        ("novelty", "screen", "birds.csv", "--config", "secret-marks.toml"),
    ],
)  # fmt: skip
def test_a_password_in_an_address_is_printed_nowhere(
    words: tuple[str, ...], run_kpca: Run, folder: Path
) -> None:
    for name, option in (("secret", "reference"), ("secret-marks", "accept")):
        Path(f"{name}.toml").write_text(f'{option} = "postgresql://ada:{PASSWORD}@h/shop"\n')
    done = run_kpca(*(word.format(PASSWORD) for word in words))
    assert_refused(done, 2, "an address holds a password")
    assert PASSWORD not in done.err
    assert not list(folder.glob("kpca-*"))


def command(
    *words: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE, **environment: str
) -> subprocess.Popen[str]:
    code = f"{HEARS_INTERRUPTS}\nimport sys; from kpca_apps.cli.entry import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=stdout,
        stderr=stderr,
        text=True,
        env={**os.environ, **environment},
    )


def until(happened: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.1)


@pytest.mark.release
@pytest.mark.parametrize("uri", ENDLESS)
@pytest.mark.parametrize("how", ["query", "table"])
def test_an_interrupt_ends_a_query_and_leaves_nothing(
    uri: str, how: str, shop: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    source = ENDLESS[uri]
    if how == "table":
        # A file from an untrusted source may hold a view of endless rows.
        rows = source.replace("count(*) AS a", "*").replace(" WHERE i < 4000000000", "")
        library = sqlite3 if uri.startswith("sqlite") else pytest.importorskip("duckdb")
        with closing(library.connect(uri.rpartition("/")[2])) as connection:
            connection.execute(f"CREATE VIEW endless AS {rows}")
        source = "endless"
    process = command("novelty", "screen", uri, f"--{how}", source, TMPDIR=str(own))
    until(lambda: f"{Path(uri.split('/')[-1])}" in open_files(process.pid))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert (process.returncode, out) == (130, "")
    assert err == "error: interrupted; nothing was written\n"
    assert not list(shop.glob("kpca-*")) and not list(own.iterdir())


def open_files(pid: int) -> str:
    names = []
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            names.append(str(path.readlink()))
        except OSError:
            continue
    return " ".join(names)


def every_file(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@pytest.mark.release
def test_the_password_of_the_environment_is_in_no_output_and_no_list_of_processes(
    postgres: Server, folder: Path
) -> None:
    postgres.run(
        f"CREATE TABLE flock ({TYPES.format(text='text', real='float8')})", flock=FRAME.to_arrow()
    )
    words = ("novelty", "screen", postgres.uri, "--table", "flock", "--label", "kind")
    kept: list[str] = []
    for more in ((), ("--write-to", "scores", "--force"), ("--json", "--force")):
        with Path("out.txt").open("w") as out, Path("err.txt").open("w") as err:
            process = command(*words, *more, stdout=out, stderr=err, PGPASSWORD=PASSWORD)
        seen = ""
        while process.poll() is None:
            for line in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen += line.read_text(errors="replace")
                except OSError:
                    continue
            time.sleep(0.2)
        kept += [Path("out.txt").read_text(), Path("err.txt").read_text()]
        assert process.returncode == 0, kept[-1]
        assert "--table" in seen and PASSWORD not in seen
    wrong = command(*words, "--force", PGPASSWORD=PASSWORD[::-1])
    out, err = wrong.communicate()
    assert wrong.returncode == 3 and err.count("\n") == 1 and "authentication failed" in err
    secrets = (PASSWORD, PASSWORD[::-1])
    assert not any(secret in text for secret in secrets for text in (*kept, out, err))
    files = [*every_file(folder)]
    assert len(files) > 8
    for path in files:
        assert not any(secret.encode() in path.read_bytes() for secret in secrets), path
    assert postgres.run("SELECT count(*) FROM scores WHERE bird >= 500") == [(60,)]
    postgres.run("DROP TABLE flock", "DROP TABLE scores")
