"""pyproject.toml declares every import, with lower bounds that can be tested."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

BOUND = re.compile(r"[\w.-]+(\[[\w,-]+\])?>=\d+(\.\d+)*")
# Distributions that only another dependency imports.
NOT_IMPORTED_HERE = {"pywavelets"}
# Extras with libraries that the package imports only if they are installed.
OPTIONAL = ("excel", "dask", "db", "duckdb", "lake", "raw", "heic", "lab", "mcp", "words")


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    return dict(parsed["project"])


def imported_modules(source: str) -> Iterator[str]:
    """Yield top-level names of import statements and of calls such as ``import_module("x")``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and node.args:
            function, name = ast.unparse(node.func).split(".")[-1], node.args[0]
            by_name = function in ("import_module", "importorskip", "find_spec")
            if by_name and isinstance(name, ast.Constant):
                yield str(name.value).split(".")[0]


def imported_distributions(folder: Path) -> dict[str, str]:
    """Return the distributions imported below a folder, each with one importing file."""
    distributions = packages_distributions()
    importing = {}
    for path in sorted(folder.rglob("*.py")):
        beside = (*path.parent.glob("*.py"), *(folder.parent / "datasets").glob("*.py"))
        own = {"kpca_apps", "tests", *(script.stem for script in beside)}
        for module in imported_modules(path.read_text(encoding="utf-8")):
            if module not in own and module not in sys.stdlib_module_names:
                for name in set(distributions.get(module, [module])):
                    importing[normalised(name)] = str(path)
    return importing


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {normalised(re.split(r"\[|>=", requirement)[0]) for requirement in requirements}


def test_what_the_package_imports_is_declared_and_no_more(
    repository: Path, project: dict[str, Any]
) -> None:
    imported = imported_distributions(repository / "kpca_apps")
    needed = names(project["dependencies"])
    extras = project["optional-dependencies"]
    optional = names([item for name in (*OPTIONAL, "napari") for item in extras[name]])
    assert {"numpy", "scikit-learn", "distributed"} < set(imported)
    assert {k: v for k, v in imported.items() if k not in needed | optional} == {}
    assert (needed | optional) - set(imported) == NOT_IMPORTED_HERE


@pytest.mark.release
def test_what_the_tests_and_scripts_import_is_declared(
    repository: Path, project: dict[str, Any]
) -> None:
    extras = project["optional-dependencies"]
    declared = names([*project["dependencies"], *extras["test"]])
    # The tests of the napari widget run in an environment of their own, with these distributions.
    declared |= {*names(extras["napari"]), "npe2", "pytestqt"}
    notes = (repository / "tests" / "benchmarks" / "README.md").read_text(encoding="utf-8")
    peers = set(re.findall(r"`pip install ([\w-]+)", notes))
    # A module whose distribution is not installed is matched by name, without hyphens.
    peers |= {name.replace("-", "") for name in peers}
    peers |= {"cv2"} if "opencv-python-headless" in peers else set()
    for folder, others in (("tests", peers), ("datasets", set())):
        imported = imported_distributions(repository / folder)
        assert {k: v for k, v in imported.items() if k not in declared | others} == {}


def test_the_test_extra_holds_what_the_other_extras_need(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    assert {item for name in OPTIONAL for item in extras[name]} <= set(extras["test"])


def test_each_dependency_has_one_lower_bound_that_can_be_tried(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    every = {name for extra in (project["dependencies"], *extras.values()) for name in extra}
    bounds = sorted(every)
    # The package uses private names of numba, which may change; DuckDB 2.0.0 scans frames wrongly.
    others = ["duckdb>=1.5,!=2.0.0", "numba>=0.60,<0.69"]
    assert [bound for bound in bounds if not BOUND.fullmatch(bound)] == others
    bounded = [normalised(re.split(r"\[|>=", bound)[0]) for bound in bounds]
    assert len(bounded) == len(set(bounded))
