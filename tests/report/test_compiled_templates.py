"""Templates are compiled once where Python may keep what it compiles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kpca_apps.report import page


def compiled(monkeypatch: pytest.MonkeyPatch, folder: Path, *, kept: bool) -> list[Path]:
    monkeypatch.setattr(sys, "pycache_prefix", str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept)
    page._environment.__wrapped__().get_template("parts.html.j2")
    return list(folder.rglob("*-jinja-*"))


def test_they_are_kept_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (first,) = compiled(monkeypatch, tmp_path, kept=True)
    before = first.stat().st_mtime_ns
    assert compiled(monkeypatch, tmp_path, kept=True) == [first]
    assert first.stat().st_mtime_ns == before


def test_nothing_is_kept_where_python_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert compiled(monkeypatch, tmp_path, kept=False) == []
    blocked = tmp_path / "blocked"
    blocked.touch()  # no folder can be made in a file
    monkeypatch.setattr(sys, "pycache_prefix", str(blocked))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert page._environment.__wrapped__().get_template("parts.html.j2")
