import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.cli.papers import fetch as papers_fetch
from kpca_apps.papers import data as data_module
from kpca_apps.papers.data import FILES, PaperFile
from tests.cli.conftest import Run, assert_refused

CONTENT = b"1 2\n" * 500


ANSWERS = {
    "/circle": b"302 Found\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n",
    "/nowhere": b"302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
    "/digits": b"200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nabc",
    "/chunks": b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
}


class Host(BaseHTTPRequestHandler):
    """Respond by path, as in ANSWERS and `do_GET`; other paths are not found."""

    released = threading.Event()

    def do_GET(self) -> None:
        body = {"/other": b"another file"}.get(self.path, CONTENT)
        if self.path == "/silent":
            self.released.wait(10.0)
        elif self.path in ANSWERS:
            self.wfile.write(b"HTTP/1.0 " + ANSWERS[self.path])
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/whole")
            self.end_headers()
        elif self.path in ("/whole", "/other", "/truncated"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:700] if self.path == "/truncated" else body)
        else:
            self.send_error(404)

    def log_message(self, format: str, *words: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        Host.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def served(address: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that replaces the papers' data files by the given paths of the server."""
    monkeypatch.setenv("no_proxy", "*")
    digest = hashlib.sha256(CONTENT).hexdigest()

    def set_files(*paths: str) -> None:
        files = tuple(PaperFile(f"set/{p}.csv", digest, f"{address}/{p}") for p in paths)
        for name in tuple(FILES):
            monkeypatch.delitem(data_module.FILES, name)
        monkeypatch.setitem(data_module.FILES, "set", files)

    return set_files


def test_files_are_fetched_once_and_what_is_there_is_left_alone(papers: Run, served: Any) -> None:
    served("whole", "moved")
    done = papers("fetch", "data")
    assert done.code == 0 and done.out == "data\n"
    assert "2 of 2 files are there, 0 from before." in done.err
    before = [path.stat().st_mtime_ns for path in sorted(Path("data/set").iterdir())]
    assert {path.read_bytes() for path in Path("data/set").iterdir()} == {CONTENT}
    Path("data/set/moved.csv").unlink()
    again = papers("fetch", "data")
    assert again.code == 0 and "2 of 2 files are there, 1 from before." in again.err
    assert Path("data/set/whole.csv").stat().st_mtime_ns == before[1]


def test_a_failed_download_is_one_line_and_the_rest_is_kept(
    papers: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(papers_fetch, "SECONDS", 0.2)
    served("missing", "truncated", "other", "silent", "whole")
    done = papers("fetch", "data", "--quiet")
    assert done.code == 5
    missing, truncated, other, silent = done.err.splitlines()
    assert missing.startswith(
        "failed: set/missing.csv: cannot be fetched (404 Client Error: Not Found"
    )
    assert "set/truncated.csv: stopped after 700 of 2,000 bytes; try again" in truncated
    assert "set/other.csv: the file at" in other
    assert silent.startswith("failed: set/silent.csv: cannot be fetched (timed out)")
    assert [path.name for path in Path("data").rglob("*") if path.is_file()] == ["whole.csv"]
    assert done.out == ""


def test_nothing_is_replaced(papers: Run, served: Any) -> None:
    served("whole", "moved")
    Path("data/set/moved.csv").mkdir(parents=True)
    Path("data/set/whole.csv").write_bytes(b"mine")
    done = papers("fetch", "data", "--quiet")
    assert done.code == 5
    assert done.err.splitlines() == [
        f"failed: set/{name}.csv: not the file the figures were made with ({why}); remove it, and "
        "kpca papers fetch gets the right one."
        for name, why in (("whole", "its SHA-256 differs"), ("moved", "it is no regular file"))
    ]
    assert Path("data/set/whole.csv").read_bytes() == b"mine"


def test_a_folder_that_cannot_be_made_ends_it(papers: Run, served: Any) -> None:
    served("whole")
    Path("data").mkdir()
    Path("data/set").write_bytes(b"a file")
    for folder in ("lost/deep", "data", "data/set"):
        assert_refused(papers("fetch", folder), 3, "cannot be made")


def test_without_a_server_one_line_is_printed_and_nothing_is_left(
    papers: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served("whole")
    nowhere = tuple(PaperFile(f"set/{x}.csv", "0" * 64, f"http://127.0.0.1:9/{x}") for x in "ab")
    monkeypatch.setitem(data_module.FILES, "set", nowhere)
    done = papers("fetch", "data")
    assert done.code == 5 and done.out == ""
    assert [line for line in done.err.splitlines() if "a.csv" in line or "b.csv" in line][-1:] == [
        "failed: set/a.csv: 127.0.0.1 cannot be reached (Connection refused); 0 of 2 files are "
        "there: run the same command again later"
    ]
    assert "b.csv" not in done.err and not Path("data").exists()


def test_a_name_that_is_not_known_ends_it_too(
    papers: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served("whole", "moved")

    def unknown(*words: Any, **options: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    done = papers("fetch", "data", "--quiet")
    assert done.code == 5 and len(done.err.splitlines()) == 1
    assert "cannot be reached (Name or service not known)" in done.err


def test_an_interrupt_keeps_what_was_fetched(
    papers: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served("whole", "moved")
    fetch = papers_fetch._fetch

    def interrupted(file: PaperFile, target: Path) -> None:
        if "moved" in file.path:
            raise KeyboardInterrupt
        fetch(file, target)

    monkeypatch.setattr(papers_fetch, "_fetch", interrupted)
    done = papers("fetch", "data", "--quiet")
    assert done.code == 130
    assert done.err.startswith("error: interrupted; 1 of 2 files are there: run the same command")
    assert Path("data/set/whole.csv").read_bytes() == CONTENT


def test_wrong_responses_are_one_line_per_file(papers: Run, served: Any) -> None:
    faults = {
        "circle": "cannot be fetched (Exceeded 30 redirects.).",
        "nowhere": "cannot be fetched (Invalid IPv6 URL).",
        "digits": "cannot be fetched (",
        "chunks": "cannot be fetched (",
    }
    served(*faults)
    done = papers("fetch", "data", "--quiet")
    assert done.code == 5 and not Path("data").exists()
    lines = done.err.splitlines()
    assert len(lines) == len(faults)
    for line, (name, words) in zip(lines, faults.items(), strict=True):
        assert line.startswith(f"failed: set/{name}.csv: ") and words in line
        assert "\\n" not in line
