"""Options of ``kpca papers``."""

from __future__ import annotations

from pathlib import Path

from kpca_apps.options import Options, files, general


class PapersOptions(Options):
    """Options of ``kpca papers``; each command uses a part of them."""

    data: Path | None = files("Folder of the data files.", "DIR")
    out: Path | None = files("Folder of the results. Default: kpca-papers-NAME.", "DIR")
    force: bool = files("Replace the results of an earlier run.", default=False)
    json: bool = general("Print the result as JSON.", default=False)
