"""New tables are written whole or not at all, for any name and any cells."""

import signal
import time
from collections.abc import Iterator
from functools import partial

import polars as pl
import pytest

from kpca_apps import screen_table
from kpca_apps.errors import ConfigError, InputError, RefusedError
from kpca_apps.tables.databases.address import sql_name
from kpca_apps.tables.databases.sqlite import SQLite
from kpca_apps.tables.databases.writing import check_new_table, write_rows
from kpca_apps.tables.opening import read_table
from tests.tables.databases.conftest import Make

HOSTILE = sql_name('s"; DROP TABLE birds; --')
FRAME = pl.DataFrame({"bird": [1, 2], "name": ["a", "'; DROP TABLE birds; --"]})
SCORES = pl.DataFrame(
    {
        "row": range(4),
        "novelty_score": [0.5, None, 1e300, -0.0],
        "flagged": [True, False, None, True],
        "rank": [1, 2, 3, 4],
        "seen": ["\u00e9", "'; DROP TABLE birds; --", "", None],
        'a"b': ["x"] * 4,
    }
)
pytestmark = pytest.mark.parametrize(
    "kind", ["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.release)]
)


def test_rows_come_back_as_they_were_written(make: Make) -> None:
    uri = make(FRAME)
    for table in ("scores", HOSTILE):
        write_rows(uri, table, iter([SCORES[:1], SCORES[1:]]), force=False)
        found = read_table(uri, table_name=table).frame
        # SQLite has no Booleans.
        assert found.cast(SCORES.schema).sort("row").equals(SCORES)  # type: ignore[arg-type]
        with pytest.raises(RefusedError, match="exists already"):
            check_new_table(uri, table, force=False)
        write_rows(uri, table, iter([SCORES[:2]]), force=True)
        assert read_table(uri, table_name=table).frame.height == 2
    assert read_table(uri, table_name="birds").frame.equals(FRAME)
    with pytest.raises(RefusedError, match="holds no scores of an earlier run"):
        write_rows(uri, "birds", iter([SCORES]), force=True)
    with pytest.raises(ConfigError, match="--write-to cannot be"):
        write_rows(uri, "a.b.c", iter([SCORES]), force=True)
    with pytest.raises(InputError):
        write_rows(uri, "nowhere.scores", iter([SCORES]), force=True)


def test_an_aborted_write_leaves_the_old_table(make: Make) -> None:
    uri = make(FRAME)

    def broken() -> Iterator[pl.DataFrame]:
        yield SCORES
        raise InputError("no more")

    with pytest.raises(InputError):
        write_rows(uri, "scores", broken(), force=False)
    with pytest.raises(InputError, match="no table"):
        read_table(uri, table_name="scores")
    write_rows(uri, "scores", iter([SCORES]), force=False)
    with pytest.raises(InputError):
        write_rows(uri, "scores", broken(), force=True)
    check_new_table(uri, "scores", force=True)
    assert read_table(uri, table_name="scores").frame.height == 4


def test_an_interrupted_write_leaves_no_table(make: Make) -> None:
    uri = make(FRAME)

    def interrupted() -> Iterator[pl.DataFrame]:
        yield SCORES
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.5)
        yield SCORES

    with pytest.raises(KeyboardInterrupt):
        write_rows(uri, "scores", interrupted(), force=False)
    with pytest.raises(InputError, match="no table"):
        read_table(uri, table_name="scores")


def test_missing_rights_to_write_are_reported_before_the_work(make: Make) -> None:
    uri = make(FRAME)
    check_new_table(uri, "scores", force=False)
    with pytest.raises(InputError, match="no table"):
        read_table(uri, table_name="scores")
    with pytest.raises(InputError, match="says"):
        check_new_table(uri, "nowhere.scores", force=False)


def test_a_table_that_ends_with_the_connection_is_refused(make: Make, kind: str) -> None:
    uri = make(FRAME)
    # DuckDB requires the keyword TEMPORARY for a temporary table.
    refused = (InputError, "says") if kind == "duckdb" else (RefusedError, "temporary")
    for table in ("pg_temp.scores",) if kind == "postgresql" else ("temp.scores", "TEMP.scores"):
        for attempt in (check_new_table, partial(write_rows, rows=iter([SCORES]))):
            with pytest.raises(refused[0], match=refused[1]):
                attempt(uri, table, force=True)
    assert write_rows(uri, "scores", iter([SCORES, SCORES]), force=False) == 8
    if kind != "postgresql":
        assert write_rows(uri, "MAIN.scores", iter([SCORES]), force=True) == 4


def test_missing_rows_are_reported_after_writing(
    make: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind != "sqlite":
        pytest.skip("the count is the same for all")
    uri = make(FRAME)

    def losing(database: SQLite) -> None:
        database._connection.execute("DELETE FROM scores WHERE row > 0")
        database._connection.execute("COMMIT")

    monkeypatch.setattr(SQLite, "commit", losing)
    with pytest.raises(InputError, match="has 1 of 4 rows after they were written"):
        write_rows(uri, "scores", iter([SCORES]), force=False)


@pytest.mark.release
def test_a_key_is_written_whatever_its_name(make: Make) -> None:
    rows = {"Rank": range(40), "size": [10.0 + k % 7 for k in range(40)]}
    uri = make(pl.DataFrame(rows), key="Rank")
    screen_table(uri, table_name="birds").save_scores(uri, "scores")
    found = read_table(uri, table_name="scores").frame
    assert found.columns[:2] == ["row", "Rank_input"] and "rank" in found.columns
    assert sorted(found["Rank_input"].to_list()) == [*range(40)]
