"""Benchmarks import only existing names of the package, and their README lists them all."""

import ast
import re
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
            for name in missing:  # the missing name may be a submodule
                import_module(f"{node.module}.{name}")


def test_the_readme_lists_each_script_and_no_other() -> None:
    listed = (SCRIPTS[0].parent / "README.md").read_text(encoding="utf-8")
    scripts = {path.stem for path in SCRIPTS if "__main__" in path.read_text(encoding="utf-8")}
    assert len(scripts) > 30
    assert {*re.findall(r"tests[/.]benchmarks[/.](\w+)", listed)} == scripts
