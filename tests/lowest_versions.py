"""Run all tests with the lowest version of each dependency that pyproject.toml allows.

Makes .venv-lowest afresh with the Python it is run with, which must be the lowest allowed (old
versions have no wheels for a newer one), and hands its own arguments on to pytest::

    python3.11 tests/lowest_versions.py
    python3.11 tests/lowest_versions.py -n 1 tests/tables

What the dependencies need themselves comes in its newest version, which may call deprecated what
an old dependency does: such warnings are no errors here.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
BUILDING = ("docs", "release", "napari")
# An empty -m leaves out nothing, neither of the tests kept for a release.
PYTEST = ("-m", "pytest", "-m", "", "-W", "default::DeprecationWarning")


def lowest_pins(project: dict[str, Any]) -> list[str]:
    """Return each requirement of the project and its extras, ``>=`` made ``==``.

    The extras that only build the site and the packages are left out: no user installs them. So is
    that of napari, a program with its own versions of what this one uses.
    """
    every_extra = project.get("optional-dependencies", {})
    extras = {name: one for name, one in every_extra.items() if name not in BUILDING}
    every = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    found = [one for one in every if not one.startswith("kpca-apps[")]
    for requirement in found:
        if not re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?>=\d+(\.\d+)*", requirement):
            sys.exit(f"pyproject.toml: {requirement!r} is not a name, >= and a lowest version")
    return sorted({requirement.replace(">=", "==") for requirement in found})


def main(arguments: list[str]) -> int:
    """Make the environment, install and test; return pytest's exit code."""
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    pins = lowest_pins(project)
    lowest = project["requires-python"].removeprefix(">=")
    if ".".join(map(str, sys.version_info[:2])) != lowest:
        sys.exit(f"run this with Python {lowest}, the lowest that pyproject.toml allows")
    folder = REPOSITORY / ".venv-lowest"
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    extras = [name for name in project["optional-dependencies"] if name not in BUILDING]
    project_with_extras = f".[{','.join(extras)}]"
    install = [python, "-m", "pip", "install", "-q", "-e", project_with_extras, *pins]
    for command in (install, [python, "-m", "pip", "check"], [python, *PYTEST, *arguments]):
        code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
