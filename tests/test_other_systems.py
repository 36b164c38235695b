"""The package works without the names that only Unix has.

A child process runs kpca_apps with `sys`, `os` and `signal` as on Windows; third-party libraries,
built for the actual system, see the original modules.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CHILD = """
import importlib, os, pkgutil, signal, sys, types

for name in LIBRARIES:
    importlib.import_module(name)


class Without(types.ModuleType):
    "A module without some of its names, and with others."

    def __init__(self, module, missing, **others):
        super().__init__(module.__name__)
        vars(self).update(_module=module, _missing=missing, **others)

    def __getattr__(self, name):
        if name in self._missing:
            raise AttributeError(name)
        return getattr(self._module, name)

    def __setattr__(self, name, value):
        setattr(self._module, name, value)


def no_proc(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc", "/sys")):
        frame = sys._getframe(1)
        while frame and "site-packages" not in frame.f_code.co_filename:
            if "kpca_apps" in frame.f_code.co_filename:
                raise FileNotFoundError(2, "No such file", arguments[0])
            frame = frame.f_back


unix = {
    "os": {"fork", "geteuid", "getuid", "getgid", "sched_getaffinity", "sysconf", "O_NOFOLLOW",
           "O_DIRECTORY", "O_NONBLOCK", "register_at_fork", "killpg", "setsid", "chown", "fchmod",
           "mkfifo", "posix_fallocate", "posix_fadvise", "pread", "pwrite", "wait4", "statvfs"},
    "signal": {"SIGHUP", "SIGQUIT", "SIGKILL", "SIGALRM", "setitimer", "SIGPIPE", "SIGTSTP"},
    "sys": set(),
}
real = {name: sys.modules[name] for name in unix}
sys.addaudithook(no_proc)
sys.modules.update(dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")))
sys.modules["msvcrt"] = types.SimpleNamespace(locking=lambda *given: None, LK_NBLCK=2)
for name, missing in unix.items():
    platform = {"platform": "win32"} if name == "sys" else {}
    sys.modules[name] = Without(real[name], missing, **platform)
import kpca_apps
for found in pkgutil.walk_packages(kpca_apps.__path__, "kpca_apps."):
    if not found.name.startswith(("kpca_apps.napari", "kpca_apps.__main__")):
        importlib.import_module(found.name)
sys.modules.update(real)
from kpca_apps.cli.main import main

sys.exit(main(sys.argv[1:]))
"""
# The child imports these libraries first, as they need the Unix-only names that it then hides.
LIBRARIES = (
    "asyncio", "ctypes", "joblib.externals.loky", "matplotlib.font_manager", "matplotlib.pyplot",
    "mcp.server.stdio", "multiprocessing.context", "numba", "PIL.Image", "polars", "psutil",
    "pyarrow.parquet", "scipy.stats", "skimage.restoration", "sklearn.utils.validation",
    "subprocess", "tempfile", "threadpoolctl", "tifffile", "typer",
)  # fmt: skip


def run(folder: Path, *words: str) -> None:
    code = f"LIBRARIES = {LIBRARIES!r}\n{CHILD}"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.release
def test_commands_run_without_what_only_unix_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3))
    values[7] = 9
    lines = ["a,b,c", *(",".join(f"{value:.3f}" for value in row) for row in values)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n", "utf-8")
    noisy = 100 + 20 * rng.standard_normal((60, 70))
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(tmp_path / "image.png")
    run(tmp_path, "novelty", "screen", "table.csv", "--out", "screened")
    assert "9.000,9.000,9.000" in (tmp_path / "screened/flagged.csv").read_text("utf-8")
    run(tmp_path, "denoise", "run", "image.png", "--out", "denoised", "--quality", "draft")
    (denoised,) = (tmp_path / "denoised").rglob("image*.png")
    assert np.asarray(Image.open(denoised)).std() < 15
