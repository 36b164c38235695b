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

# The parent process (e.g. nohup) may ignore signals, and child processes inherit that.
for _name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) == signal.SIG_IGN:
        _is_interrupt = _name == "SIGINT"
        signal.signal(_number, signal.default_int_handler if _is_interrupt else signal.SIG_DFL)

# Matplotlib needs no display.
os.environ["MPLBACKEND"] = "Agg"

# Let subprocesses write bytecode, so that modules are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Run the same examples every time; no deadline, so a busy machine fails no test.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
# Long runs: pytest --hypothesis-profile long; KPCA_EXAMPLES lowers the number of examples.
settings.register_profile(
    "long",
    max_examples=int(os.environ.get("KPCA_EXAMPLES", "10000")),
    derandomize=False,  # other settings come from the profile above
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

# These scripts run by hand, on data outside the repository (benchmarks/README.md).
collect_ignore = ["benchmarks"]

# Milliseconds until a page counts as stuck; 30 seconds were too few on busy machines.
PATIENCE = 180_000

# Number of items to validate at either end of a long list.
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
    """Return the handlers of SIGINT and SIGTERM, and the signals this thread blocks."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if os.name == "posix" else set()
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), blocked


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect temporary files to a folder of the test and return it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Fail a test that leaves interrupts ignored or blocked."""
    # A shell's background jobs, and their children, ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    expected = (signal.default_int_handler, signal.getsignal(signal.SIGTERM), set())
    yield
    assert signals() == expected, "the test leaves signals handled or blocked in another way"


@pytest.fixture(scope="session", autouse=True)
def every_result_follows_its_schema() -> Iterator[None]:
    """Validate every JSON document that this process writes against its schema."""
    from jsonschema import Draft202012Validator

    from kpca_apps.report import result_json
    from kpca_apps.report.json_schema import schema_of

    write, validators = result_json.to_json, {}

    def shortened(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shortened(item) for key, item in value.items()}
        if isinstance(value, list):
            some = value if len(value) <= 2 * CHECKED else value[:CHECKED] + value[-CHECKED:]
            return [shortened(item) for item in some]
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
    return ROOT


@pytest.fixture(scope="session")
def datasets() -> Path:
    return ROOT / "datasets"


@pytest.fixture(scope="session")
def papers_folder() -> Path:
    """Return the folder of material outside the repository (``KPCA_PAPERS``)."""
    folder = os.environ.get("KPCA_PAPERS")
    if not folder:
        pytest.skip("needs material outside the repository: set KPCA_PAPERS to its folder")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """Run a server of S3 with one empty bucket; yield its client."""
    from tests.stores import moto_store

    with moto_store() as client:
        yield client


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def firefox(downloads: Path) -> Iterator[Any]:
    """Start Firefox and control it by its built-in Marionette protocol."""
    if FIREFOX is None:
        pytest.skip("no Firefox on this machine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the driver detects the system with deprecated calls
        driver = pytest.importorskip(
            "marionette_driver.marionette", reason="marionette_driver is not installed"
        )
    client = driver.Marionette(
        bin=FIREFOX,
        headless=True,
        port=0,
        prefs={
            "browser.download.folderList": 2,
            "browser.download.dir": str(downloads),
            "browser.download.useDownloadDir": True,
            "browser.download.alwaysOpenPanel": False,
        },
        gecko_log=str(downloads.with_suffix(".log")),
    )
    client.start_session()
    yield client
    client.cleanup()
    del client
    gc.collect()  # delete Firefox's profiles now: at interpreter exit it is too late
