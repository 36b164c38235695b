from __future__ import annotations

import os
from pathlib import Path

import pytest

from kpca_apps.system import memory


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of the files a system tells its memory in; empty: a system that tells nothing."""
    versions = ("v2", "v1")
    groups = tuple((str(tmp_path / f"{v}.limit"), str(tmp_path / f"{v}.used")) for v in versions)
    monkeypatch.setattr(memory, "_CGROUP_FILES", groups)
    monkeypatch.setattr(memory, "_MEMINFO", str(tmp_path / "meminfo"))
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    return tmp_path


def test_the_machine_tells_what_is_available(machine: Path) -> None:
    (machine / "meminfo").write_text("MemTotal:  900 kB\nMemAvailable:    500 kB\n")
    assert memory.available_bytes() == 500 * 1024


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_container_bounds_the_machine(machine: Path, version: str) -> None:
    (machine / "meminfo").write_text("MemAvailable: 500 kB\n")
    (machine / f"{version}.limit").write_text("5000\n")
    (machine / f"{version}.used").write_text("2000\n")
    assert memory.available_bytes() == 3000
    (machine / f"{version}.used").write_text("6000\n")
    assert memory.available_bytes() == 0
    (machine / f"{version}.limit").write_text("max\n")
    assert memory.available_bytes() == 500 * 1024


def test_half_of_all_memory_where_nothing_says_what_is_free(machine: Path) -> None:
    assert memory.available_bytes() == 4096 * 1000 // 2
    (machine / "meminfo").write_bytes(b"MemTotal: 900 kB\nMemAvailable:\n\xff\n")
    assert memory.available_bytes() == 4096 * 1000 // 2
    (machine / "meminfo").write_text("MemAvailable:\n")
    assert memory.available_bytes() == 4096 * 1000 // 2


def test_a_small_machine_is_assumed_where_nothing_is_said(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert memory.available_bytes() == 4 * 1024**3
