"""Database types are read by their meaning or as text, and any loss is reported."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import read_table
from tests.postgres import PASSWORD, Server
from tests.tables.databases.conftest import duckdb_of

BIG = 2**53 + 1


def cells(table: Any) -> dict[str, Any]:
    return dict(zip(table.columns, table.frame.row(0), strict=True))


def test_each_column_of_sqlite_has_one_type(tmp_path: Path) -> None:
    rows = [
        (BIG, BIG, 1, 1, b"\x01\xff", None, "a"),
        (2, 0.5, "x", b"\xff", b"", None, None),
        (None, inf, 2.5, "y", None, None, "\u00e9\u0000b"),
    ]
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE a (whole, number, mixed, bytes, blob, none, text)")
        # Write many rows of one type first, which would mislead a driver that infers types from
        # them.
        first = [(k, k, k, k, b"", None, "b") for k in range(20_000)]
        connection.executemany("INSERT INTO a VALUES (?, ?, ?, ?, ?, ?, ?)", [*first, *rows])
    table = read_table(f"sqlite:///{tmp_path}/a.db")
    assert table.frame[-3:].to_dict(as_series=False) == {
        "whole": [BIG, 2, None],
        "number": [float(BIG), 0.5, inf],
        "mixed": ["1", "x", "2.5"],
        "bytes": ["1", "ff", "y"],
        "blob": ["01ff", "", None],
        "none": [None] * 3,
        "text": ["a", None, "\u00e9\u0000b"],
    }
    assert table.source.notes == (
        f'Whole numbers from {2**53:,} on are rounded: "number". If they are identifiers, '
        "cast them to text in --query.",
    )


def test_numbers_of_sqlite_among_text_keep_their_digits(tmp_path: Path) -> None:
    numbers = [123456789.123456789, 0.1, 1e300, -5e-324, 2.5]
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE a (mixed, bytes)")
        connection.executemany("INSERT INTO a VALUES (?, ?)", [(item, item) for item in numbers])
        connection.execute("INSERT INTO a VALUES ('x', x'ff')")
    for column in read_table(f"sqlite:///{tmp_path}/a.db").frame:
        assert [float(text) for text in column[:-1]] == numbers


def test_rounding_is_reported_for_integers_only(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE a (large, long)")
        connection.executemany("INSERT INTO a VALUES (?, ?)", [(1, -(2**53)), (1e300, 0.5)])
    (note,) = read_table(f"sqlite:///{tmp_path}/a.db").source.notes
    assert 'are rounded: "long".' in note


def test_text_of_sqlite_that_is_not_utf_8_is_refused_without_being_shown(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE a AS SELECT CAST(x'ff736563726574' AS TEXT) AS b")
    with pytest.raises(InputError, match="not UTF-8") as refused:
        read_table(f"sqlite:///{tmp_path}/a.db")
    assert "secret" not in str(refused.value)


def test_a_write_that_was_killed_does_not_prevent_reading_sqlite(tmp_path: Path) -> None:
    """SQLite refuses to read until the unfinished write is undone, which takes write access."""
    path = tmp_path / "shop.db"
    killed = (
        "import os, signal, sqlite3\n"
        f"database = sqlite3.connect({str(path)!r})\n"
        "database.execute('CREATE TABLE birds (wing)')\n"
        "with database: database.executemany('INSERT INTO birds VALUES (?)', [(1,), (2,)])\n"
        "database.execute('PRAGMA cache_size = 1')\n"
        "cells = [('x' * 1000,) for _ in range(1000)]\n"
        "database.executemany('INSERT INTO birds VALUES (?)', cells)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    assert Path(f"{path}-journal").exists()
    assert read_table(f"sqlite:///{path}").frame["wing"].to_list() == [1, 2]


def test_a_view_in_a_file_of_duckdb_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("secret")
    with duckdb_of(tmp_path / "a.duckdb") as connection:
        connection.execute(f"CREATE VIEW a AS SELECT * FROM read_text('{tmp_path}/own.txt')")
    for query in (None, f"SELECT * FROM read_text('{tmp_path}/own.txt')"):
        with pytest.raises(InputError, match="Cannot access file"):
            read_table(f"duckdb:///{tmp_path}/a.duckdb", query=query)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("text::INTEGER", "Could not convert string (a cell)"),
        ("strptime(text, '%Y')", "Could not parse string (a cell)"),
        ("whole::INTEGER", "Type INT64 with value (a cell) can't be cast"),
        ("whole * 9000000000", "Overflow in multiplication of INT64 (a cell)"),
    ],
)
def test_a_cell_of_duckdb_that_cannot_be_cast_is_not_shown(
    what: str, message: str, tmp_path: Path
) -> None:
    with duckdb_of(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE a AS SELECT 'sec\"re''t' AS text, 777777777777 AS whole")
    with pytest.raises(InputError) as refused:
        read_table(f"duckdb:///{tmp_path}/a.duckdb", query=f"SELECT {what} AS x FROM a")
    assert message in str(refused.value)
    assert "sec" not in str(refused.value) and "777" not in str(refused.value)


def test_types_of_duckdb(tmp_path: Path) -> None:
    with duckdb_of(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'fine')")
        connection.execute(
            f"""CREATE TABLE a AS SELECT {BIG}::BIGINT AS whole, {BIG}::HUGEINT AS huge,
            {BIG}::DECIMAL(30, 0) AS digits, 1.25::DECIMAL(8, 2) AS price, 7::UTINYINT AS small,
            'nan'::DOUBLE AS nan, 'inf'::FLOAT AS inf, 'fine'::mood AS mood,
            'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS uuid, '{{"a": 1}}'::JSON AS json,
            [1, NULL] AS list, {{'a': [1]}} AS record, MAP {{'x': 1}} AS map, '101'::BIT AS bits,
            '\\xFF'::BLOB AS blob, INTERVAL '1 month 2 days' AS span, TIME '10:00' AS clock,
            DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 10:00' AS at, NULL AS none,
            TIMESTAMPTZ '2024-02-29 10:00:00+02' AS zoned, 'infinity'::TIMESTAMP AS never,
            '-infinity'::DATE AS early, [INTERVAL '1 day'] AS spans, true AS yes,
            TIME '24:00:00' AS late,
            union_value(k := 1) AS either, TIMESTAMP_S '2024-02-29 10:00' AS second,
            [DATE '2024-02-29', 'infinity'] AS days, {{'a': [TIMESTAMP 'infinity']}} AS moments,
            INTERVAL '25 months' AS years"""
        )
    table = read_table(f"duckdb:///{tmp_path}/a.duckdb")
    row = cells(table)
    assert isnan(row.pop("nan"))
    assert row == {
        "whole": BIG, "huge": str(BIG), "digits": str(BIG), "price": 1.25, "small": 7,
        "inf": inf, "mood": "fine", "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "json": '{"a": 1}', "list": "[1, null]", "record": '{"a": [1]}',
        "map": row["map"], "bits": "101", "blob": "ff", "span": 32 * 86400.0, "clock": "10:00:00",
        "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 10), "none": None,
        "zoned": datetime(2024, 2, 29, 8, tzinfo=UTC), "never": None, "early": None,
        "spans": "[1 day]", "yes": True, "late": "24:00:00", "either": "1",
        "second": datetime(2024, 2, 29, 10),
        "days": "[2024-02-29, infinity]", "moments": "{'a': [infinity]}",
        "years": (2 * 365.25 + 30) * 86400,
    }  # fmt: skip
    assert table.source.notes == (
        'Intervals read as seconds, a year as 365.25 days and a month as 30: "span", "years".',
        "2 dates that are infinite or outside the calendar are read as missing.",
        'Lists and records read as text: "list", "record", "map".',
    )


def test_the_only_table_may_lie_in_a_schema_of_its_own(tmp_path: Path) -> None:
    with duckdb_of(tmp_path / "a.duckdb") as connection:
        connection.execute('CREATE SCHEMA "all.sales"')
        connection.execute('CREATE TABLE "all.sales".orders AS SELECT 7 AS a')
    uri = f"duckdb:///{tmp_path}/a.duckdb"
    assert read_table(uri).frame.rows() == [(7,)]
    with pytest.raises(InputError, match=r'Did you mean ""all\.sales"\.orders"'):
        read_table(uri, table_name='"all.sales".order')


@pytest.mark.release
def test_types_of_postgresql(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    postgres.run("CREATE TYPE mood AS ENUM ('sad', 'fine')", "CREATE DOMAIN price AS numeric(5, 2)")
    table = read_table(
        postgres.uri,
        query=f"""SELECT {BIG}::int8 AS whole, {BIG}::numeric AS digits, 1.25::price AS price,
        'NaN'::numeric AS nan, 'Infinity'::float8 AS inf, 'fine'::mood AS mood, 1::int2 AS small,
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS uuid, '{{"a": 1}}'::jsonb AS json,
        array[1, NULL] AS list, array[['a'], ['b']] AS square, row(1, 'x') AS record,
        '101'::bit(3) AS bits, '\\xff'::bytea AS blob, interval '1 month 2 days' AS span,
        time '24:00' AS clock, timetz '10:00+01' AS zoned_clock, date '2024-02-29' AS day,
        timestamp '2024-02-29 10:00' AS at, timestamptz '2024-02-29 10:00+02' AS zoned,
        'infinity'::timestamp AS never, '-infinity'::date AS early,
        interval '25 months' AS years,
        timestamp '294276-01-01' AS late, date '-infinity' AS past, inet '10.0.0.1' AS address,
        12.5::numeric::money AS money, int4range(1, 5) AS span_of, 3000000000::oid AS oid,
        'c'::char(3) AS padded, NULL AS none, true AS yes, array['fine'::mood] AS moods""",
    )
    found = cells(table)
    assert isnan(found.pop("nan"))
    assert found == {
        "whole": BIG, "digits": float(BIG), "price": 1.25, "inf": inf, "mood": "fine", "small": 1,
        "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "json": '{"a": 1}', "list": "[1,null]",
        "square": '[["a"],["b"]]', "record": "(1,x)", "bits": "101", "blob": "ff",
        "span": 32 * 86400.0, "years": (2 * 365.25 + 30) * 86400,
        "clock": "24:00:00", "zoned_clock": "10:00:00+01",
        "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 10),
        "zoned": datetime(2024, 2, 29, 8, tzinfo=UTC), "never": None, "early": None, "late": None,
        "past": None, "address": "10.0.0.1/32", "money": 12.5, "span_of": "[1,5)",
        "oid": 3_000_000_000, "padded": "c", "none": None, "yes": True, "moods": '["fine"]',
    }  # fmt: skip
    assert [note.split(":")[0].split(" are ")[0] for note in table.source.notes] == [
        "The query has no ORDER BY",
        "Intervals read as seconds, a year as 365.25 days and a month as 30",
        "4 dates that",
        f"Whole numbers from {2**53:,} on",
    ]
