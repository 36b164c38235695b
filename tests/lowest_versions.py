"""Run all tests with the lowest version of each dependency that pyproject.toml allows.

Recreates .venv-lowest with the Python that runs it, which must be the lowest supported (old
versions have no wheels for newer ones), and passes its arguments to pytest::

    python3.11 tests/lowest_versions.py
    python3.11 tests/lowest_versions.py -n 1 tests/tables

Indirect dependencies are installed in their newest versions, which may deprecate what an old
dependency does: such warnings are not errors here.
"""

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# Leave out extras that only build the site and packages, and napari, which pins its own versions.
BUILDING = ("docs", "release", "napari")
# An empty -m selects all tests, release tests too.
PYTEST = ("-m", "pytest", "-m", "", "-W", "default::DeprecationWarning")
# This test runs Python with all warnings as errors.
DESELECT = "--deselect=tests/test_imports.py::test_no_module_warns_when_it_is_imported"


def main(arguments: list[str]) -> int:
    """Create the environment, install the package and run the tests; return pytest's exit code."""
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    lowest = project["requires-python"].removeprefix(">=")
    if ".".join(map(str, sys.version_info[:2])) != lowest:
        sys.exit(f"run this with Python {lowest}, the lowest that pyproject.toml allows")
    folder = REPOSITORY / ".venv-lowest"
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    extras = [name for name in project["optional-dependencies"] if name not in BUILDING]
    project_with_extras = f".[{','.join(extras)}]"
    pip = [python, "-m", "pip"]
    lowest_of = [python, "-m", "uv", "pip", "install", "-q", "--resolution", "lowest-direct"]
    for command in (
        [*pip, "install", "-q", "uv"],
        [*lowest_of, "--python", python, "-e", project_with_extras],
        [*pip, "check"],
        [python, *PYTEST, DESELECT, *arguments],
    ):
        code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
