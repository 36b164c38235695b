"""Make the sample reports of this folder, and pictures of first screens.

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
NOISY = DATASETS / "photographs" / "noisy"
# The command behind each report.
COMMANDS = {
    "papers": ("papers", "run", "all", "--data", DATA),
    "penguins_faults": ("novelty", "screen", *TABLE),
    "photographs": ("denoise", "run", str(NOISY)),
    "noisy_text": ("denoise", "run", str(NOISY / "text.png")),
}
PAGES = ("papers", "penguins_faults", "noisy_text")
# Heights of the screens that are shown, in pixels.
PICTURES = {"papers": 820, "penguins_faults": 840, "photographs": 790}
NOT_ALL_RUN = 5  # exit code of a run of which some experiments lack their data


def run(name: str, folder: Path) -> Path:
    """Run the command behind a report in a folder, and return the page it made."""
    call = [sys.executable, "-m", "kpca_apps", *COMMANDS[name]]
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
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    if "papers" in options.only and options.data is None:
        parser.error("the page of the papers needs --data")
    with tempfile.TemporaryDirectory() as place:
        for name in options.only:
            folder = Path(place, name)
            folder.mkdir()
            if name == "papers":
                (folder / DATA).symlink_to(options.data.resolve(), target_is_directory=True)
            page = run(name, folder)
            if name in PAGES:
                shutil.copyfile(page, HERE / f"{name}.html")
            if name in PICTURES:
                picture(page, PICTURES[name], HERE / f"{name}.png")
            print(f"made: {name}")


if __name__ == "__main__":
    main()
