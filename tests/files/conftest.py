"""What the tests of files share."""

from __future__ import annotations

import pytest

from kpca_apps.files import parts_parquet


@pytest.fixture
def no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the other process, a third of a second each time; test_parquet_trial.py has it."""
    monkeypatch.setattr(parts_parquet, "require_readable", lambda files: None)
