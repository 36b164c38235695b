"""Every code block of the README and of the documentation's pages runs as it stands.

Blocks of ``sh`` and ``python`` run one after the other, each page in an empty folder with a copy of
the repository's ``datasets``. Blocks marked ``text`` are not run; blocks that need an optional
library name it. ``.ci/run`` runs the README's two marked commands; the site build runs the
tutorials.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres import PASSWORD, running_server
from tests.stores import moto_store

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if "_build" not in page.parts
)
BLOCK = re.compile(
    r"(<!-- (?:command|needs): \w+ -->\n)?^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return (language, code) of a page's blocks to run, its Python blocks joined."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in BLOCK.findall(text) if not is_left_out(block[0])]
    python = "\n".join(code for _, language, code in blocks if language == "python")
    shell = [(language, code) for _, language, code in blocks if language == "sh"]
    return [*shell, *([("python", python)] if python else [])]


def is_left_out(mark: str) -> bool:
    """Return True if a block is run elsewhere or needs a library that is not installed."""
    needed = re.search(r"needs: (\w+)", mark)
    return bool(mark) and (needed is None or importlib.util.find_spec(needed[1]) is None)


@pytest.mark.release
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)])
def test_code_blocks_run(page: str, tmp_path: Path) -> None:
    with bucket_of(page), server_of(page):
        run_blocks(page, tmp_path)


@contextmanager
def bucket_of(page: str) -> Iterator[None]:
    """Start an S3 store with the bucket that a page names, and set its environment."""
    if "s3://survey" not in (ROOT / page).read_text(encoding="utf-8"):
        yield
        return
    with moto_store("survey") as store:
        for table in (ROOT / "datasets").glob("*.csv"):
            store.upload_file(str(table), "survey", table.name)
        for image in (ROOT / "datasets" / "photographs" / "noisy").iterdir():
            store.upload_file(str(image), "survey", f"photographs/{image.name}")
        yield


@contextmanager
def server_of(page: str) -> Iterator[None]:
    """Start PostgreSQL with the database that a page names, and set its environment."""
    if "postgresql:///shop" not in (ROOT / page).read_text(encoding="utf-8"):
        yield
        return
    with running_server() as server, pytest.MonkeyPatch.context() as patched:
        where = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "ada"}
        for name, value in {**where, "PGPASSWORD": PASSWORD}.items():
            patched.setenv(name, value)
        yield


def run_blocks(page: str, tmp_path: Path) -> None:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    # Use the commands of this interpreter, as an active virtual environment does.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    for language, code in blocks_of(page):
        command = ["bash", "-euo", "pipefail", "-c"] if language == "sh" else [sys.executable, "-c"]
        done = subprocess.run(
            [*command, code], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{code}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr
