"""Make what this folder holds again: the page of the papers, and pictures of first screens.

    python reports/make.py [--data FOLDER] [--only NAME ...]

``papers`` needs the data that ``kpca papers fetch FOLDER`` gets, pictures need playwright and a
Chromium. ``engine_growth.png`` is written by ``tests/benchmarks/engine_growth.py``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATASETS = HERE.parent / "datasets"
DATA = "papers-data"  # what the page of the papers calls the data folder
TABLE = (str(DATASETS / "penguins_faults.csv"), "--id", "Individual ID", "--share", "0.05")
# The command behind each picture, and the height of the screen that is shown.
SCREENS = {
    "papers": (("papers", "run", "all", "--data", DATA), 820),
    "penguins_faults": (("novelty", "screen", *TABLE), 840),
    "photographs": (("denoise", "run", str(DATASETS / "photographs" / "noisy")), 790),
}
NOT_ALL_RUN = 5  # exit code of a run of which some experiments lack their data


def run(name: str, folder: Path) -> Path:
    """Run the command behind a picture in a folder, and return the page it made."""
    call = [sys.executable, "-m", "kpca_apps", *SCREENS[name][0]]
    done = subprocess.run(call, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, NOT_ALL_RUN):
        raise SystemExit(done.returncode)
    return folder / done.stdout.splitlines()[-1]


def picture(page: Path, height: int, target: Path) -> None:
    """Write the first screen of a page as a picture."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, names)), None),
            args=["--no-sandbox", "--disable-gpu"],
        )
        tab = chromium.new_page(viewport={"width": 1280, "height": height})
        tab.goto(page.as_uri())
        tab.screenshot(path=target)
        chromium.close()


def main() -> None:
    """Make all, or those asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder that kpca papers fetch filled")
    parser.add_argument("--only", nargs="+", choices=SCREENS, default=list(SCREENS))
    options = parser.parse_args()
    if "papers" in options.only and options.data is None:
        parser.error("the page of the papers needs --data")
    with tempfile.TemporaryDirectory() as place:
        for name in options.only:
            if name == "papers":
                Path(place, DATA).symlink_to(options.data.resolve(), target_is_directory=True)
            page = run(name, Path(place))
            if name == "papers":
                shutil.copyfile(page, HERE / "papers.html")
            picture(page, SCREENS[name][1], HERE / f"{name}.png")
            print(f"made: {name}")


if __name__ == "__main__":
    main()
