from __future__ import annotations

import pytest

from kpca_apps.engine import memory
from kpca_apps.engine.exact import bytes_needed
from kpca_apps.errors import MemoryLimitError


def test_default_budget_is_a_quarter_of_what_is_available(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    assert memory.default_budget() == 250


def test_a_container_limits_the_machine(monkeypatch, tmp_path):
    (tmp_path / "limit").write_text("5000\n")
    (tmp_path / "usage").write_text("2000\n")
    files = ((str(tmp_path / "limit"), str(tmp_path / "usage")),)
    monkeypatch.setattr(memory, "_CGROUP_FILES", files)
    assert memory.available_bytes() == 3000
    (tmp_path / "limit").write_text("max\n")
    assert memory.available_bytes() > 10**6


def test_refusal_names_size_budget_and_way_out():
    with pytest.raises(MemoryLimitError) as refusal:
        memory.require(3 * 10**9, 2 * 10**6, "The thing", "use less")
    assert str(refusal.value) == (
        "The thing needs 3.0 GB, the budget is 2 MB: use less, or raise memory_budget."
    )
    assert refusal.value.exit_code == 4
    memory.require(10, 10, "The thing", "use less")


def test_estimates_grow_with_the_work():
    assert bytes_needed(2000, 5) >= 8 * 2000**2
    assert bytes_needed(2000, None) > bytes_needed(2000, 5)
    assert bytes_needed(1000, 5, indefinite=True) > bytes_needed(1000, 5)
    assert memory.nystroem_fit_bytes(2000, 5) > memory.nystroem_fit_bytes(1000, 5)
