"""A server that is missing, refuses, stops or gets interrupted causes a one-line error."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.databases.writing import OF_SCORES, check_new_table, write_rows
from kpca_apps.tables.opening import read_table
from tests.postgres import PASSWORD, Server, running_server

pytestmark = pytest.mark.release
SLOW = "SELECT i, pg_sleep(0.001)::text AS a FROM generate_series(1, 30000) i"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def uri(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgres.uri


def refused(uri: str, **options: object) -> str:
    """Return the one-line error that reading raises."""
    with pytest.raises(InputError) as error:
        read_table(uri, **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value) and PASSWORD not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("(a || i)::int", "invalid input syntax for type integer: (a cell)"),
        ("to_date(a || i, 'YYYY')", "invalid value (a cell)"),
        ("(i::int8 << 40)::text::int", "value (a cell) is out of range for type integer"),
    ],
)
def test_a_cell_that_cannot_be_cast_is_not_shown(uri: str, what: str, expected: str) -> None:
    rows = """SELECT i, E'secret"\\n' AS a FROM generate_series(1, 9) i"""
    message = refused(uri, query=f"SELECT {what} AS x FROM ({rows}) AS r")
    assert expected in message and "secret" not in message and "1099" not in message


def test_the_server_refuses_a_missing_password(
    uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert "password authentication failed for user" in refused(uri, query="SELECT 1")
    assert ".pgpass" in refused(uri, query="SELECT 1")
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    assert "no password supplied" in refused(uri, query="SELECT 1")
    # Credentials as libpq finds them: a password file or a service.
    own = tmp_path / "pgpass"
    own.write_text(f"127.0.0.1:*:shop:ada:{PASSWORD}\n")
    own.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(own))
    assert read_table(uri, query="SELECT 1 AS a").frame.rows() == [(1,)]
    port = uri.rpartition(":")[2].partition("/")[0]
    (tmp_path / "service.conf").write_text(
        f"[birds]\nhost=127.0.0.1\nport={port}\nuser=ada\ndbname=shop\npassword={PASSWORD}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "service.conf"))
    monkeypatch.delenv("PGPASSFILE")
    table = read_table("postgresql:///?service=birds", query="SELECT 1 AS a")
    assert table.frame.rows() == [(1,)] and table.source.name == "query"


def test_a_server_that_is_not_there(uri: str) -> None:
    message = refused("postgresql://ada@127.0.0.1:1/shop", query="SELECT 1")
    assert "Connection refused; start the database server" in message
    assert 'database "nothing" does not exist' in refused(
        uri.replace("/shop", "/nothing"), query="SELECT 1"
    )
    assert "could not translate host name" in refused(
        "postgresql://ada@nowhere.invalid/shop", query="SELECT 1"
    )


def test_only_tables_that_may_be_read(uri: str, postgres: Server) -> None:
    postgres.run("CREATE TABLE lost (a int)", "DROP TABLE lost")
    assert 'there is no table "lost"' in refused(uri, table_name="lost")
    assert "permission" not in refused(uri, table_name="pg_catalog.nothing")
    # Writes by a function, which servers before version 16 allow, are rolled back.
    with suppress(InputError):
        read_table(uri, query="SELECT lo_create(0)::text AS a")
    assert postgres.run("SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]
    postgres.run("CREATE SEQUENCE numbers")
    assert "read-only transaction" in refused(uri, query="SELECT nextval('numbers')")
    read_write = "SELECT set_config('transaction_read_only', 'off', false)"
    assert "read-write mode" in refused(uri, query=read_write)
    postgres.run("DROP SEQUENCE numbers")


def test_rows_come_by_the_key_wherever_they_are_stored(uri: str, postgres: Server) -> None:
    postgres.run(
        'CREATE SCHEMA "my shop"',
        'CREATE TABLE "my shop"."all.birds" (a int, b text, c int, PRIMARY KEY (c, a))',
        'INSERT INTO "my shop"."all.birds" '
        "SELECT i % 7, i::text, i / 7 FROM generate_series(1, 50) i",
        'UPDATE "my shop"."all.birds" SET b = b WHERE c = 2',
    )
    table = read_table(uri, table_name='my shop."all.birds"')
    assert table.source.key_columns == ("c", "a") and table.source.key_column is None
    assert table.frame.rows() == sorted(table.frame.rows(), key=lambda row: (row[2], row[0]))
    postgres.run('DROP SCHEMA "my shop" CASCADE')
    postgres.run("CREATE TABLE loose AS SELECT 1 AS a")
    assert "no primary key" in read_table(uri, table_name="loose").source.notes[0]
    postgres.run("DROP TABLE loose")


def test_the_only_table_may_lie_in_a_schema_of_its_own(uri: str, postgres: Server) -> None:
    # The view returns the settings it is read with: scans start at the first row, in one process.
    settings = "synchronize_seqscans", "max_parallel_workers_per_gather"
    shown = ", ".join(f"current_setting('{name}') AS {name}" for name in settings)
    postgres.run('CREATE SCHEMA "all.sales"', f'CREATE VIEW "all.sales".orders AS SELECT {shown}')
    try:
        table = read_table(uri)
        assert table.source.name == "all.sales.orders"
        assert table.frame.cast(pl.String).rows() == [("off", "0")]
    finally:
        postgres.run('DROP SCHEMA "all.sales" CASCADE')


def test_missing_rights_to_create_a_table_are_reported_at_once(uri: str, postgres: Server) -> None:
    postgres.run(
        "REVOKE CREATE ON SCHEMA public FROM public", f"CREATE ROLE bob LOGIN PASSWORD '{PASSWORD}'"
    )
    try:
        with pytest.raises(InputError, match="permission denied"):
            check_new_table(uri.replace("ada@", "bob@"), "scores", force=False)
    finally:
        postgres.run("DROP ROLE bob")


def after(postgres: Server, act: Callable[[], object]) -> None:
    """Call a function from another thread once the server sends rows."""

    def wait_and_act() -> None:
        postgres.wait_for("generate_series(1, 30000)")
        time.sleep(0.5)
        act()

    threading.Thread(target=wait_and_act, daemon=True).start()


def test_a_connection_that_is_ended_midway(uri: str, postgres: Server) -> None:
    # This SELECT is itself sent as a COPY statement.
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
    )
    after(postgres, lambda: postgres.run(end))
    assert "terminating connection" in refused(uri, query=SLOW)
    assert nothing_is_left(postgres)


def test_a_query_that_takes_too_long_is_cancelled_on_the_server(uri: str, postgres: Server) -> None:
    began = time.monotonic()
    assert "longer than the 1 s of --timeout" in refused(uri, query=SLOW, timeout=1)
    assert "longer than the 1 s of --timeout" in refused(
        uri, query="SELECT pg_sleep(600)::text AS a", timeout=1
    )
    assert time.monotonic() - began < 30
    assert nothing_is_left(postgres)


def test_an_interrupt_cancels_on_the_server(uri: str, postgres: Server) -> None:
    after(postgres, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        read_table(uri, query=SLOW)
    assert nothing_is_left(postgres)


def test_a_server_that_is_killed_midway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    own = tempfile.gettempdir()
    monkeypatch.setattr(tempfile, "tempdir", None)  # the server's user cannot read a test's folder
    with running_server() as server:
        monkeypatch.setattr(tempfile, "tempdir", own)
        after(server, server.process.kill)
        assert "PostgreSQL says: " in refused(server.uri, query=SLOW)
    assert no_spool_is_left()


def test_a_server_that_is_killed_while_scores_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setattr(tempfile, "tempdir", None)
    with running_server() as server:
        scores = pl.DataFrame(dict.fromkeys(OF_SCORES, range(1000)))

        def rows() -> Iterator[pl.DataFrame]:
            yield scores
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()
            for _ in range(1000):
                yield scores

        with pytest.raises(InputError, match="PostgreSQL says: ") as error:
            write_rows(server.uri, "scores", rows(), force=False)
        assert "\n" not in str(error.value)


def nothing_is_left(postgres: Server) -> bool:
    """Return True if the server has no other connection and no temporary file remains."""
    end = time.monotonic() + 20
    while postgres.connections() and time.monotonic() < end:
        time.sleep(0.1)
    return not postgres.connections() and no_spool_is_left()


def no_spool_is_left() -> bool:
    return not list(Path(tempfile.gettempdir()).glob(".kpca-rows*"))
