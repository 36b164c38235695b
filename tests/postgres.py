import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "Rosebud-1941-rosebud"
_FOLDERS = ("/usr/lib/postgresql", "/usr/local/opt", "/usr/local/pgsql")


@dataclass(frozen=True)
class Server:
    """PostgreSQL server with a database ``shop`` and a user ``ada`` who needs a password."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        """Return the address of the database, without the password."""
        return f"postgresql://ada@127.0.0.1:{self.port}/shop"

    def run(self, *statements: str, **ingest: Any) -> list[Any]:
        """Run each statement separately and return the rows of the last."""
        from adbc_driver_postgresql import dbapi

        with (
            pytest.MonkeyPatch.context() as patched,
            # Close the cursor before the connection, or the driver warns.
            closing(self._connection(dbapi, patched)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            rows: list[Any] = []
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            for name, table in ingest.items():
                cursor.adbc_ingest(name, table, mode="append")
            return rows

    def ingest(self, name: str, table: Any) -> None:
        """Append rows to a table, creating it if missing."""
        from adbc_driver_postgresql import dbapi

        with (
            pytest.MonkeyPatch.context() as patched,
            closing(self._connection(dbapi, patched)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.adbc_ingest(name, table, mode="create_append")

    def _connection(self, dbapi: Any, patched: pytest.MonkeyPatch) -> Any:
        patched.setenv("PGPASSWORD", PASSWORD)
        return dbapi.connect(self.uri, autocommit=True)

    def wait_for(self, query: str, seconds: float = 60) -> None:
        """Wait until another connection runs a query that contains `query`."""
        end, here = time.monotonic() + seconds, "pid <> pg_backend_pid()"
        while time.monotonic() < end:
            found = self.run(
                f"SELECT 1 FROM pg_stat_activity WHERE {here} AND state = 'active' "
                f"AND query LIKE '%{query}%'"
            )
            if found:
                return
            time.sleep(0.1)
        raise AssertionError(f"nothing runs {query}")

    def connections(self) -> int:
        """Return the number of other connections to the database."""
        here = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return int(self.run(f"SELECT count(*) FROM pg_stat_activity WHERE {here}")[0][0])


def _programs() -> Path | None:
    """Return the folder of the server's programs, or None."""
    if initdb := shutil.which("initdb"):
        return Path(initdb).resolve().parent
    for folder in _FOLDERS:
        for program in sorted(Path(folder).glob("**/bin/initdb"), reverse=True):
            return program.parent
    return None


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server in a temporary folder, or skip the test."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra db is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's programs are not on this machine")
    user: dict[str, Any] = {}
    if os.name != "posix":
        pytest.skip("a server is started on POSIX systems alone")
    if os.geteuid() == 0:
        import pwd

        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="kpca-pg-", ignore_cleanup_errors=True) as name:
        folder, password = Path(name), Path(name, "password")
        password.write_text(PASSWORD)
        for path in (folder, password) if user else ():
            os.chown(path, user["user"], user["group"])
        data, environment = folder / "data", {**os.environ, "LC_ALL": "C"}
        initdb = ["-D", data, "-U", "ada", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        how: dict[str, Any] = {"cwd": folder, "env": environment, **user}
        subprocess.run(
            [programs / "initdb", *initdb, f"--pwfile={password}"],
            check=True,
            stdout=subprocess.DEVNULL,
            **how,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = ("fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories=")
        words = [word for option in settings for word in ("-c", option)]
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, "-p", str(port), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **how,
        )
        try:
            _wait_until_up(Server(port, process))
            yield Server(port, process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)  # fast shutdown
                process.wait(30)


def _wait_until_up(server: Server) -> None:
    from adbc_driver_postgresql import dbapi

    uri = server.uri.replace("/shop", "/postgres")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PGPASSWORD", PASSWORD)
        for _ in range(300):
            try:
                with closing(dbapi.connect(uri, autocommit=True)) as connection:
                    with closing(connection.cursor()) as cursor:
                        cursor.execute("CREATE DATABASE shop")
                    return
            except dbapi.Error:
                time.sleep(0.1)
    raise AssertionError("the server does not start")
