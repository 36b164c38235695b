"""Meaning of addresses, names and passwords, and errors that do not repeat passwords."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.cli.commands import command_line
from kpca_apps.errors import ConfigError, InputError, KpcaError, about
from kpca_apps.tables.databases.address import database_address, sql_name, table_name, typed
from kpca_apps.tables.opening import expand, open_table, read_table
from kpca_apps.tables.read.uri import refuse_password, scheme_of, with_file

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(TEXTS, TEXTS)
def test_any_name_is_quoted_so_that_the_database_reads_it_back(name: str, column: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {sql_name(f'x{name}')} ({sql_name(column)} INTEGER)")
        (found,) = connection.execute("SELECT name FROM sqlite_master").fetchone()
        head = connection.execute(f"SELECT {sql_name(column)} FROM {sql_name(f'x{name}')}")
    assert found == f"x{name}"
    assert head.description[0][0] == column


@given(st.lists(TEXTS, min_size=1, max_size=2))
def test_a_quoted_name_is_taken_apart_as_it_was(parts: list[str]) -> None:
    assert table_name(sql_name(tuple(parts))) == tuple(parts)
    assert table_name(typed(tuple(parts))) == tuple(parts)


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "a.b.c", '"a', 'a"b', '"a"b', 'a"; DROP TABLE b; --', "\0"],
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="--table cannot be"):
        table_name(name)


@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        ("sqlite://shop.db", {}, "after three slashes"),
        ("sqlite:///shop.db?mode=rwc", {}, "after three slashes"),
        ("duckdb:///", {}, "after three slashes"),
        ("sqlite:///shop.db#a", {"table": "b"}, "keep one of them"),
        ("sqlite:///shop.db", {"table": "b", "query": "SELECT 1"}, "keep one of them"),
        ("sqlite:///shop.db", {"query": "DROP TABLE a"}, "must be a SELECT"),
        ("sqlite:///shop.db", {"query": "/* SELECT */ DELETE FROM a"}, "must be a SELECT"),
        ("sqlite:///shop.db", {"query": "PRAGMA query_only = OFF"}, "must be a SELECT"),
        ("postgresql://h/shop", {"query": "COPY (SELECT 1) TO PROGRAM 'id'"}, "must be a SELECT"),
        ("postgresql://h/shop", {"query": ""}, "must be a SELECT"),
    ],
)
def test_invalid_arguments_are_refused(uri: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        database_address(uri, **options)


def test_an_address_says_what_is_read() -> None:
    assert database_address("sqlite:///a%20b.db#x").path == "a b.db"
    assert database_address("sqlite:////home/ada/a.db", "s.t").table == ("s", "t")
    assert database_address("duckdb:///shop.duckdb", query=" select 1 ; ").query == "select 1"
    assert (
        database_address("duckdb:///shop.duckdb", query="-- a\n(VALUES (1))").name
        == "query of shop"
    )
    assert database_address(
        "postgresql://ada@h:5432/shop?sslmode=require", query="TABLE a"
    ).name == ("query of shop")
    assert [scheme_of(item) for item in (Path("sqlite:///a"), "a.csv", "C://a", "S3://a/b")] == [
        None, None, None, "s3",
    ]  # fmt: skip
    # Wildcards in an address are part of the address.
    assert expand("postgresql://h/shop?sslmode=require") == ["postgresql://h/shop?sslmode=require"]
    assert with_file("postgresql://h/home/a", str.upper) == "postgresql://h/home/a"


@pytest.mark.parametrize(
    ("query", "is_ordered"),
    [
        ("SELECT a FROM b ORDER BY a", True),
        ("SELECT a FROM b Order/* */\nby a LIMIT 1", True),
        ("((SELECT f(a) FROM b) ORDER BY a)", True),
        ("SELECT a FROM (SELECT a FROM b ORDER BY a) AS c", False),
        ("SELECT row_number() OVER (ORDER BY (a)) FROM b", False),
        ("SELECT ' ORDER BY ''a' FROM b", False),
        ("SELECT E'\\' ORDER BY ', $x$'( ORDER BY $x$ FROM b", False),
        ('SELECT "order by" FROM b', False),
        ("SELECT a FROM b -- ORDER BY a", False),
        ("SELECT a FROM b /* ' ORDER BY a */", False),
    ],
)
def test_an_order_is_one_of_the_query_itself(query: str, is_ordered: bool) -> None:
    assert database_address("sqlite:///a.db", query=query).is_ordered is is_ordered


@pytest.mark.parametrize("end", ["; -- all of it", " ;\n/* all;\n'of it */ ;\n-- ;", ";;"])
def test_a_query_ends_before_its_last_semicolon(end: str) -> None:
    query = "SELECT ';' AS a, '-- ;' AS b -- ';"
    assert database_address("sqlite:///a.db", query=query).query == query
    query = query.partition(" -- '")[0]
    assert database_address("sqlite:///a.db", query=query + end).query == query


PASSWORDS = (
    "rosebud", "p/w", "a@b", "1234", "a b", "#x?", ":", "12,SECRET9", "2024?x", "12/abc",
    "p@ss:word", "/x",
)  # fmt: skip


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "form",
    [
        "postgresql://ada:{}@h/shop", "--reference=postgresql://ada:{}@h:5432/shop",
        "postgres://ada@h/shop?password={}", "postgresql:///shop?sslmode=require&sslpassword={}",
        "postgresql://:{}@/shop", " postgresql://ada:{}@h/shop", "s3://AKIA:{}@bucket/rows.csv",
    ],
)  # fmt: skip
def test_a_password_is_refused_and_not_repeated(form: str, password: str) -> None:
    with pytest.raises(ConfigError) as refused:
        refuse_password(form.format(password))
    assert password in ":" or password not in str(refused.value).replace("~/.pgpass", "")
    if form.startswith("postgres"):
        with pytest.raises(ConfigError, match="PGPASSWORD"):
            open_table(form.format(password))


@pytest.mark.parametrize(
    "word",
    [
        "postgresql://ada@h:5432/shop", "postgresql://h:5432", "postgresql://h:5432/a%40b",
        "postgresql://a@h:5432,i:5432/shop",
        "postgresql:///shop?service=x&user=ada", "data/a:b@c.csv", "s3://bucket/a@b.csv",
        "s3://bucket/a:b@c.csv", "sqlite:///a:b@c.db", "postgresql://ada@[::1]:5432/shop#a@b",
        "SELECT 'http://a:b@c'",
    ],
)  # fmt: skip
def test_an_address_without_a_password_passes(word: str) -> None:
    refuse_password(word)


@pytest.mark.parametrize("password", ["rosebud", "p/w", "12,SECRET9", "1234"])
def test_a_password_behind_another_at_is_in_no_command_and_no_message(password: str) -> None:
    uri = f"postgresql://a@corp:{password}@h/shop"
    with pytest.raises(ConfigError):
        refuse_password(uri)
    with pytest.raises(InputError) as caught, about(uri):
        raise InputError("cannot be read.")
    assert "postgresql://a@corp:...@h/shop" in str(caught.value)
    assert command_line(["kpca", uri]) == "kpca postgresql://a@corp:...@h/shop"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:rosebud", "postgresql://ada:rosebud%40h/shop",
        "postgres://h:5432,ada:rosebud/shop", "--reference=postgresql://ada:5432rosebud?x=y",
    ],
)  # fmt: skip
def test_an_invalid_port_is_taken_for_a_password(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        refuse_password(address)
    assert "rosebud" not in str(refused.value)
    with pytest.raises(InputError) as caught, about(address):
        raise InputError("cannot be read.")
    assert "rosebud" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://h/d?user=rosebud%zz", "postgresql://h/d?rosebud", "postgresql://[rosebud",
        "postgresql://h/d?rosebud=1", "postgresql://h/d?application_name=rose%00bud",
        "postgresql:///d?host=h&port=rosebud", "postgresql://h/d?a=rosebud=1",
    ],
)  # fmt: skip
def test_what_libpq_cannot_parse_of_an_address_is_not_repeated(address: str) -> None:
    with pytest.raises(KpcaError) as refused:
        read_table(address)
    assert "rosebud" not in str(refused.value).replace(address, "").replace("%00", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_named_pipe_is_no_database_and_is_not_waited_for(scheme: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "shop.db")
    with pytest.raises(InputError, match="this is a pipe or a device; name the file"):
        read_table(f"{scheme}:///{tmp_path / 'shop.db'}")
