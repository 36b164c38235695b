"""What a run of ``kpca denoise`` leaves behind beside the images: reports and their data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.files.output import OutputFolder

if TYPE_CHECKING:
    from kpca_apps.denoise.result import DenoisingResult, TrialResult

__all__ = ["PREVIEW_FOLDER", "REPORT_FOLDER", "write_denoising", "write_trial"]

REPORT_FOLDER, PREVIEW_FOLDER = "report", "preview"


def write_denoising(result: DenoisingResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the report of a batch, its data and its pictures.

    Parameters
    ----------
    result : DenoisingResult
    folder : OutputFolder
        Beside the folder of the images.
    clock : Clock
        Of the run.
    """
    from kpca_apps.report.denoising import denoising_pages
    from kpca_apps.report.denoising_text import has_figures
    from kpca_apps.report.result_json import result_to_json

    clock.told["seconds of images"] = {
        image.name: round(image.seconds, 3)
        for image in result.images
        if image.status == "ok" and not image.resumed
    }
    clock.told["resumed"] = result.n_resumed
    with folder as building:
        _write(building / "result.json", result_to_json(result))
        for name, page in denoising_pages(result):
            _write(building / name, page)
        if has_figures(result):
            from kpca_apps.report.denoising_figures import denoising_figures

            for name, png in denoising_figures(result).items():
                _write(building / "figures" / f"{name}.png", png)
        clock.lap("report")
        _write(building / "run.json", clock.to_json())


def write_trial(result: TrialResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the page of a trial of strengths, and its data."""
    from kpca_apps.report.denoising import render_trial
    from kpca_apps.report.result_json import result_to_json

    with folder as building:
        _write(building / "result.json", result_to_json(result))
        _write(building / REPORT_FILE, render_trial(result))
        clock.lap("report")
        _write(building / "run.json", clock.to_json())


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
