"""What ``kpca papers run`` leaves in its folder.

All that draws is imported with this file: a run does so before its first experiment, so that
nothing that is missing is found when all are done.
"""

from __future__ import annotations

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.errors import RefusedError
from kpca_apps.files.output import OutputFolder
from kpca_apps.papers.result import GalleryResult
from kpca_apps.report.gallery import gallery_figures, render_gallery
from kpca_apps.report.result_json import result_to_json

__all__ = ["write_papers"]


def write_papers(result: GalleryResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the page, its figures and its numbers.

    Parameters
    ----------
    result : GalleryResult
    folder : OutputFolder
    clock : Clock

    Raises
    ------
    RefusedError
        If the folder may not be replaced, or the memory does not suffice to draw.
    InputError
        If the folder cannot be made, or the disk is full.
    """
    try:
        with folder as building:
            (building / REPORT_FILE).write_bytes(render_gallery(result).encode())
            (building / "result.json").write_bytes(result_to_json(result).encode())
            figures = gallery_figures(result)
            if figures:
                (building / "figures").mkdir()
            for name, png in figures.items():
                (building / "figures" / f"{name}.png").write_bytes(png)
            clock.lap("report")
            (building / "run.json").write_bytes(clock.to_json().encode())
    except MemoryError:
        raise RefusedError(
            "the memory of this machine does not suffice to draw the page: end other programs, or "
            "run the experiments one by one"
        ) from None
