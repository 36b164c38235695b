"""Benchmarks are run by hand: names of ours that they use exist, and CONTRIBUTING lists them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_of_the_package_exists(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("kpca_apps"):
            module = import_module(str(node.module))
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            for name in missing:  # a module of a package
                import_module(f"{node.module}.{name}")


def test_contributing_lists_each_script(repository: Path) -> None:
    told = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scripts = [path.stem for path in SCRIPTS if "__main__" in path.read_text(encoding="utf-8")]
    assert len(scripts) > 30
    assert [one for one in scripts if not any(f"benchmarks{c}{one}" in told for c in "/.")] == []
