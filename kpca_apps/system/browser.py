"""A page printed to PDF by the browser of this machine, which sees no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kpca_apps.names import reason_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OF_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
SECONDS = 120.0  # a page takes a few
_OPTIONS = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check",
    "--disable-extensions", "--disable-sync", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage",
    # The page asks for nothing, and what the browser asks for by itself finds no host.
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9",
    "--no-pdf-header-footer", "--print-to-pdf-no-header",
)  # fmt: skip
# When it was printed: the same page gives the same bytes.
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:[0-9]{14}")


def find_browser() -> str | None:
    """Return the path of a browser that can print, if there is one."""
    paths = (shutil.which(name) for name in BROWSERS)
    return next(filter(None, paths), next(filter(os.path.exists, _OF_MAC), None))


def print_page(page: Path, pdf: Path, *, seconds: float = SECONDS) -> str:
    """Print an HTML page to PDF; return why there is none, or nothing if there is."""
    browser = find_browser()
    if browser is None:
        return f"{pdf.name} is not written: neither Chromium nor Chrome is found on this machine."
    with TemporaryDirectory(prefix="kpca-", ignore_cleanup_errors=True) as home:
        # Its own sandbox does not start for the administrator, as whom containers run.
        as_root = sys.platform == "linux" and os.geteuid() == 0
        made = Path(home, "page.pdf")
        words = [
            browser,
            *_OPTIONS,
            *["--no-sandbox"] * as_root,
            f"--user-data-dir={Path(home, 'profile')}",
            f"--print-to-pdf={made}",
            page.resolve().as_uri(),
        ]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{pdf.name} is not written: the browser took more than {seconds:g} seconds."
        except OSError as error:
            return f"{pdf.name} is not written: the browser does not start ({reason_of(error)})."
        if not made.is_file():
            return f"{pdf.name} is not written: the browser ended with code {done.returncode}."
        content = made.read_bytes()
    pdf.write_bytes(_DATES.sub(rb"/\1 (D:20000101000000", content))
    return ""
