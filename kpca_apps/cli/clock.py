"""The time a run takes, for the one file that may hold it."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

__all__ = ["REPORT_FILE", "Clock"]

REPORT_FILE = "report.html"


@dataclass
class Clock:
    """Wall-clock seconds of the parts of a run, and what else differs between runs.

    They go to ``run.json`` and nowhere else.
    """

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        """Note the time since the last lap under a name."""
        now = time.perf_counter()
        self.seconds[name] = round(now - self._last, 3)
        self._last = now

    def to_json(self) -> str:
        """Say when, where and how long."""
        run = {
            "started": self.started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "platform": platform.platform(),
            "seconds": self.seconds,
            **self.told,
        }
        return json.dumps(run, indent=2) + "\n"
