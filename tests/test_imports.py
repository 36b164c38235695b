"""Every module can be imported, first or last, without a warning."""

import os
import subprocess
import sys

import pytest

# Modules that need napari are imported only if it is installed.
ALL = """
import importlib, importlib.util, pkgutil
import kpca_apps
for module in pkgutil.walk_packages(kpca_apps.__path__, "kpca_apps."):
    if module.name != "kpca_apps.napari.widget" or importlib.util.find_spec("napari"):
        importlib.import_module(module.name)
for name in kpca_apps.__all__:
    getattr(kpca_apps, name)
"""
# Import each module first in a process, so that no module relies on another's imports.
EACH_FIRST = """
import importlib, importlib.util, os, pkgutil, sys
libraries = sys.argv[1].split()
for name in libraries:
    importlib.import_module(name)
place = importlib.util.find_spec("kpca_apps").submodule_search_locations
names = []
for folder, _, files in os.walk(place[0]):
    below = os.path.relpath(folder, os.path.dirname(place[0])).replace(os.sep, ".")
    stems = [file.removesuffix(".py") for file in files if file.endswith(".py")]
    names += [f"{below}.{stem}".removesuffix(".__init__") for stem in stems]
assert len(names) > 100 and "kpca_apps" not in sys.modules
if not importlib.util.find_spec("napari"):
    names.remove("kpca_apps.napari.widget")
names.remove("kpca_apps.__main__") if "kpca_apps.__main__" in names else None
for name in sorted(names):
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
LIBRARIES = "numpy scipy.linalg scipy.spatial sklearn.base numba polars pyarrow skimage matplotlib"


@pytest.mark.release
@pytest.mark.parametrize("options", [["-W", "error"], ["-W", "error", "-X", "dev"]])
def test_no_module_warns_when_it_is_imported(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *options, "-c", ALL], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.release
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")
def test_any_module_may_be_the_first() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EACH_FIRST, LIBRARIES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
