"""Write the folder of a run's results."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpca_apps.cli.console import Console
from kpca_apps.report.document import Document
from kpca_apps.system.stores.addresses import AnyPath, StorePath

if TYPE_CHECKING:
    from kpca_apps.report.result_json import Result

REPORT_FILE = "report.html"
# Details that only some commands record, and their types.
_DETAILS: dict[str, Any] = {
    "seconds of images": dict[str, float],
    "version of the table": str,
    **dict.fromkeys(("workers", "threads of a worker", "resumed"), int),
}
RUN = Document(
    "run",
    "When, where and how long a command ran, and the files it wrote: run.json of every run.",
    added={
        **dict.fromkeys(("started", "finished", "host", "platform", "tool"), str),
        "seconds": dict[str, float],
        "files": tuple[str, ...],
        **_DETAILS,
    },
    optional=_DETAILS,
)


@dataclass
class Clock:
    """Times and details of a run, written to ``run.json``."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)
    _last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        """Record as `name` the seconds since the previous call of `lap`, or since the start."""
        now = time.perf_counter()
        self.seconds[name] = round(now - self._last, 3)
        self._last = now

    def to_json(self) -> str:
        """Return the content of ``run.json``."""
        elapsed = timedelta(seconds=time.perf_counter() - self._began)
        run = {
            **RUN.head,
            "started": self.started.isoformat(timespec="seconds"),
            # Do not use the current time, as the clock may have been set back during the run.
            "finished": (self.started + elapsed).isoformat(timespec="seconds"),
            "host": platform.node(),
            "platform": platform.platform(),
            "seconds": self.seconds,
            **self.details,
        }
        return json.dumps(run, indent=2) + "\n"


def near(path: AnyPath) -> AnyPath:
    """Return a path inside the working folder as a relative path, other paths unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@contextmanager
def made_for_use(folder: AnyPath) -> Iterator[None]:
    """At the end of the block, remove a folder that the block created and left empty."""
    if isinstance(folder, StorePath) or os.path.lexists(folder):
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def write_result(
    folder: Path,
    result: Result,
    pages: Iterable[tuple[str, str | bytes]],
    figures: Mapping[str, bytes],
    clock: Clock,
    data: str = "result.json",
) -> None:
    """Write data, pages, figures and run times into the folder of a run."""
    from kpca_apps.report.result_json import result_to_json

    def write(name: str, content: str | bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)

    write(data, result_to_json(result))
    for name, page in pages:
        write(name, page)
    for name, png in figures.items():
        write(f"figures/{name}.png", png)
    clock.lap("report")
    write("run.json", clock.to_json())


def print_result(console: Console, folder: AnyPath, result: Result, as_json: bool) -> None:
    """Print the result as JSON, or the path of the report as the last line."""
    from kpca_apps.report.result_json import result_to_json

    if as_json:
        console.data(result_to_json(result))
    else:
        console.data_path(near(folder) / REPORT_FILE)
