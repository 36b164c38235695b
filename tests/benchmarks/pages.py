"""Size of a report's page, and how long a browser takes until it can be worked with.

    python tests/benchmarks/pages.py [TABLE ...] [--share 0.02] [--slower 1 4] [--repeats 5]

Without tables, those of `datasets/` and one of 100,000 rows, with what the command lists of each.
Printed are bytes, elements, rows of the list, and milliseconds of Chromium from the start of the
navigation: until the page is read and its script has run ("ready"; beside it what the thread of
the page has worked until it is shown, the same on a busy machine), and until a press of `j` has
opened the list and is drawn ("first key", from the press; "later key" is the next one). Chromium
slows its processor down by each factor of ``--slower``. Medians; needs ``pip install playwright``
and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps import screen_table

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
LARGE = 100_000
READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
KEY = """key => new Promise(done => {
    const start = performance.now();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def large_table() -> pl.DataFrame:
    """Make numbers that hang together, categories and a date, with faults of many kinds."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(LARGE, 3))
    values = hidden @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(LARGE, 8))
    faulty = rng.choice(LARGE, LARGE // 50, replace=False)
    values[faulty, rng.integers(8, size=len(faulty))] *= rng.choice([10, -1, 100], len(faulty))
    columns: dict[str, object] = {f"measure {k}": values[:, k].round(3) for k in range(8)}
    columns["city"] = rng.choice(["Rome", "Oslo", "Bern", "Kiel"], LARGE)
    columns["kind"] = rng.choice(["a", "b", "c"], LARGE)
    columns["name"] = [f"N{place:06d}" for place in range(LARGE)]
    columns["date"] = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(LARGE)]
    return pl.DataFrame(columns)


def measure(browser: Any, page_file: Path, slower: float) -> tuple[float, float, float, float]:
    """Open a page in a slower browser, and return its milliseconds."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(page_file.as_uri())
    metrics = {
        one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
    }
    worked = 1e3 * metrics["TaskDuration"]
    found = (page.evaluate(READY), worked, page.evaluate(KEY, "j"), page.evaluate(KEY, "j"))
    page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--explain", type=int, default=100)
    parser.add_argument("--slower", type=float, nargs="+", default=[1, 4])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from playwright.sync_api import sync_playwright

    tables: list[Any] = options.tables or [
        *(path for path in sorted(DATASETS.glob("*.csv"))),
        large_table(),
    ]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for table in tables:
            name = table.name if isinstance(table, Path) else f"{table.height:,} rows"
            begun = time.process_time()
            result = screen_table(table, share=options.share, explain=options.explain)
            seconds = time.process_time() - begun
            path = Path(folder, "report.html")
            result.save_report(path)
            page = browser.new_page()
            page.goto(path.as_uri())
            n_elements = page.locator("*").count()
            n_rows = page.locator("tr[data-row]").count()
            page.close()
            print(
                f"{name}: {path.stat().st_size / 1e3:,.0f} kB, {n_elements:,} elements, "
                f"{n_rows:,} rows; screened in {seconds:.1f} s",
                flush=True,
            )
            for slower in options.slower:
                runs = [measure(browser, path, slower) for _ in range(options.repeats)]
                ready, cpu, first, later = map(statistics.median, zip(*runs, strict=True))
                print(
                    f"    {slower:g} x slower: ready {ready:,.0f} ms ({cpu:,.0f} ms CPU), "
                    f"first key {first:,.0f} ms, later key {later:,.0f} ms",
                    flush=True,
                )
        browser.close()


if __name__ == "__main__":
    main()
