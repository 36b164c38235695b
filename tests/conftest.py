"""What every test may use: folders, seeds, and settings that make a run repeat itself."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import Server, running_server

# What started the tests, such as nohup, may ignore signals, and all that they start inherits that.
for _name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) == signal.SIG_IGN:
        _is_interrupt = _name == "SIGINT"
        signal.signal(_number, signal.default_int_handler if _is_interrupt else signal.SIG_DFL)

# Figures are drawn without a window, whatever the machine.
os.environ["MPLBACKEND"] = "Agg"

# What tests start is compiled once, also where Python was told to keep nothing of that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples in every run, and no verdict that depends on how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
# Each property at length, other examples each time: pytest --hypothesis-profile long. Of dear ones
# fewer may do.
settings.register_profile(
    "long",
    max_examples=int(os.environ.get("KPCA_EXAMPLES", "10000")),
    derandomize=False,  # else as in the profile above, which is the default by now
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

# Scripts to run by hand on data that is not in the repository (benchmarks/README.md).
collect_ignore = ["benchmarks"]

# Milliseconds until a page counts as stuck: of half a minute busy machines took more.
PATIENCE = 180_000

# Of a long list in a result so many are checked, at either end.
CHECKED = 10

ROOT = Path(__file__).resolve().parent.parent

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def signals() -> tuple[object, ...]:
    """Return what happens to an interrupt in this process, and what this thread blocks."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if os.name == "posix" else set()
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), blocked


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder temporary files go to."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Fail the test after which an interrupt is lost on what is started later."""
    # Where tests run in the background of a shell interrupts are ignored, by what they start, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    expected = (signal.default_int_handler, signal.getsignal(signal.SIGTERM), set())
    yield
    assert signals() == expected, "the test leaves signals handled or blocked in another way"


@pytest.fixture(scope="session", autouse=True)
def every_result_follows_its_schema() -> Iterator[None]:
    """Hold what is written as JSON in this process to the schema of its kind."""
    from jsonschema import Draft202012Validator

    from kpca_apps.report import result_json
    from kpca_apps.report.json_schema import schema_of

    write, validators = result_json.to_json, {}

    def shortened(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shortened(one) for key, one in value.items()}
        if isinstance(value, list):
            some = value if len(value) <= 2 * CHECKED else value[:CHECKED] + value[-CHECKED:]
            return [shortened(one) for one in some]
        return value

    def checked(document: Any, content: Any) -> str:
        text = write(document, content)
        if document.kind not in validators:
            validators[document.kind] = Draft202012Validator(schema_of(document))
        validators[document.kind].validate(shortened(json.loads(text)))
        return text

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(result_json, "to_json", checked)
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def datasets() -> Path:
    """Folder of the tables that come with the repository."""
    return ROOT / "datasets"


@pytest.fixture(scope="session")
def papers_folder() -> Path:
    """Folder of material that is not in the repository, named by ``KPCA_PAPERS``."""
    folder = os.environ.get("KPCA_PAPERS")
    if not folder:
        pytest.skip("needs material outside the repository: set KPCA_PAPERS to its folder")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of PostgreSQL, started for the tests."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that Firefox saves in."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def firefox(downloads: Path) -> Iterator[Any]:
    """Firefox, driven over Marionette, which it speaks itself: no driver stands between."""
    if FIREFOX is None:
        pytest.skip("no Firefox on this machine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks in an old way which system this is
        driver = pytest.importorskip(
            "marionette_driver.marionette", reason="marionette_driver is not installed"
        )
    preferences = {
        "browser.download.folderList": 2,
        "browser.download.dir": str(downloads),
        "browser.download.useDownloadDir": True,
        "browser.download.alwaysOpenPanel": False,
    }
    client = driver.Marionette(
        bin=FIREFOX,
        headless=True,
        port=0,
        prefs=preferences,
        gecko_log=str(downloads.with_suffix(".log")),
    )
    client.start_session()
    yield client
    client.cleanup()
    del client
    gc.collect()  # its profiles clear away after themselves, which is too late at the end
