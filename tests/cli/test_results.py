import json
from datetime import UTC, datetime, timedelta

from kpca_apps.cli.results import Clock


def test_no_run_ends_before_it_began_though_the_clock_was_set_back() -> None:
    times = json.loads(Clock(started=datetime.now(UTC) + timedelta(days=365)).to_json())
    passed = datetime.fromisoformat(times["finished"]) - datetime.fromisoformat(times["started"])
    assert timedelta(0) <= passed < timedelta(minutes=1)
