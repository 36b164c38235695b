from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kpca_apps.system import memory

_ASKED = "from kpca_apps.system.memory import available_bytes; print(available_bytes())"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of the system's memory files; if empty, the system reports nothing."""
    monkeypatch.setattr(memory, "_CGROUPS", str(tmp_path / "groups"))
    monkeypatch.setattr(memory, "_OWN_CGROUP", str(tmp_path / "own"))
    monkeypatch.setattr(memory, "_MEMINFO", str(tmp_path / "meminfo"))
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    return tmp_path


def test_available_memory_is_read_from_the_system(machine: Path) -> None:
    (machine / "meminfo").write_text("MemTotal:  900 kB\nMemAvailable:    500 kB\n")
    assert memory.available_bytes() == 500 * 1024


@pytest.mark.parametrize("place", [".", "job", "job/step"])
def test_a_container_or_a_job_bounds_the_machine(machine: Path, place: str) -> None:
    """The process's control group may set the limit, or any control group that contains it."""
    (machine / "meminfo").write_text("MemAvailable: 500 kB\n")
    (machine / "own").write_text("4:cpu:/other\n0::/job/step\n")
    group = machine / "groups" / place
    group.mkdir(parents=True)
    (group / "memory.max").write_text("5000\n")
    (group / "memory.current").write_text("2000\n")
    assert memory.available_bytes() == 3000
    (group / "memory.current").write_text("6000\n")
    assert memory.available_bytes() == 0
    (group / "memory.max").write_text("max\n")
    assert memory.available_bytes() == 500 * 1024


def test_a_limit_of_addresses_bounds_the_machine() -> None:
    assert 2**29 < int(_told(2**30, _ASKED).stdout) < 2**30


@pytest.mark.release
@pytest.mark.parametrize("n_threads", [2, 16])
def test_claimed_addresses_are_sufficient(
    n_threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "n_cores", lambda: n_threads)
    for library in ("OPENBLAS", "OMP", "NUMBA"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", str(n_threads))
    monkeypatch.setenv("POLARS_MAX_THREADS", str(n_threads))
    table = Path(__file__).parents[2] / "datasets/penguins_faults.csv"
    call = ["novelty", "screen", str(table), "--out", str(tmp_path / "out")]
    words = f"from kpca_apps.cli.main import main; raise SystemExit(main({call}))"
    assert _told(memory.claimed_addresses(), words).returncode == 0


def test_too_few_addresses_are_refused_before_libraries_end_the_process() -> None:
    words = "from kpca_apps.cli.main import main; raise SystemExit(main(['papers', 'list']))"
    done = _told(memory.claimed_addresses() - 2**30, words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert done.stderr.startswith("error: ulimit -v allows ")


def _told(limit: int, program: str) -> subprocess.CompletedProcess[str]:
    words = f"ulimit -v {-(-limit // 1024)}; exec {sys.executable} -c {shlex.quote(program)}"
    return subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)


def test_half_of_all_memory_if_free_memory_is_unknown(machine: Path) -> None:
    assert memory.available_bytes() == 4096 * 1000 // 2
    (machine / "meminfo").write_bytes(b"MemTotal: 900 kB\nMemAvailable:\n\xff\n")
    assert memory.available_bytes() == 4096 * 1000 // 2
    (machine / "meminfo").write_text("MemAvailable:\n")
    assert memory.available_bytes() == 4096 * 1000 // 2


def test_a_small_machine_is_assumed_without_information(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert memory.available_bytes() == 4 * 1024**3
