"""Entry points for untrusted files, each the function that a command calls.

`enter` lets one of them read, use and write a file, or refuse it in one line; anything else is a
fault. The fuzzer (tests/benchmarks/fuzz.py) and the corpus of its findings use them.
"""

import io
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import typer

from kpca_apps.cli.main import UsageError, app, main
from kpca_apps.cli.novelty.rules import _EXPORTS, broken_lines, reading_lines
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.pages import read_mask
from kpca_apps.denoise.batch.per_image import read_per_image
from kpca_apps.denoise.batch.profile import read_profile
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.denoise.options import Options
from kpca_apps.errors import ConfigError, KpcaError, KpcaWarning
from kpca_apps.images.dng import write_dng
from kpca_apps.images.files import FORMATS, encode_image, read_image
from kpca_apps.images.tags import camera_and_iso
from kpca_apps.names import one_line
from kpca_apps.novelty.accepted import MOST, find_marked, find_reviewed, read_marks
from kpca_apps.novelty.columns.parts import Execution
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.novelty.compare.diff import diff_runs
from kpca_apps.novelty.relations.rule_file import read_rules
from kpca_apps.novelty.relations.table_rules import check_table_rules
from kpca_apps.novelty.run import score
from kpca_apps.novelty.screening.model import load_model
from kpca_apps.system.files.output import MARKER, OutputFolder
from kpca_apps.system.finished import FinishedParts, FinishedPass
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable
from tests.denoise.toy import SETTINGS, picture, save, smooth
from tests.hostile.images import saved, texture
from tests.hostile.outputs import unshowable
from tests.novelty.relations.ruled import ruled_frame
from tests.novelty.screening.test_hostile_models import mixed

MOST_PAGES = 16  # maximum number of pages to decode and write
LONGEST = 1000  # maximum number of characters of a message


@dataclass(frozen=True)
class Door:
    """A function that reads a file, and the file's name; a folder is passed as one zip file."""

    read: Callable[[Path], object]
    name: str = "it"
    is_folder: bool = False


def enter(target: str, data: bytes, folder: Path) -> str:
    """Pass a file to an entry point; return "read" or "refused", or raise any other error."""
    door = DOORS[target]
    path = folder / door.name
    if door.is_folder:
        shutil.rmtree(path, ignore_errors=True)
        if not _unpacked(data, path):
            return "refused"
    else:
        path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            # Warnings of numpy and other libraries would appear on the terminal.
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", KpcaWarning)
            door.read(path)
    except KpcaError as error:
        line = str(error)
        assert not unshowable(line, ""), f"not one line: {line!r}"
        assert len(line) <= LONGEST, f"a message of {len(line)} characters: {line!r}"
        return "refused"
    return "read"


def _unpacked(data: bytes, path: Path) -> bool:
    """Unpack the files of a folder; return False if there are none or a name is not allowed."""
    path.mkdir()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(file.file_size for file in members) > 1 << 24:
                return False
            if not all(file.filename for file in members):
                return False
            archive.extractall(path)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError):
        return False
    return True


def _table(path: str | Path) -> None:
    """Read a table whole and in parts."""
    read_table(path)
    table = open_table(path, in_memory_rows=5, part_rows=16)
    if isinstance(table, PartedTable):
        for part in table.parts:
            part.read()


def _folder_of_tables(path: Path) -> None:
    open_table(path, in_memory_rows=1e6)


def _database(path: Path) -> None:
    _table(f"sqlite:///{path}#t")


def _image(path: Path) -> None:
    """Decode an image and write it again; write the mosaic of a raw file as well."""
    image = read_image(path, label="it")
    camera_and_iso(image.metadata.exif)
    pages = [image.page(number) for number in range(min(len(image.pages), MOST_PAGES))]
    if image.mosaic is not None:
        mosaic = image.mosaic()
        write_dng(io.BytesIO(), mosaic.light, mosaic, image)
    # Infinite values are refused before denoising; NaN is a missing value.
    if len(pages) < len(image.pages) or any(np.isinf(page).any() for page in pages):
        return
    if path.is_dir():
        with tempfile.TemporaryDirectory() as out:
            encode_image(Path(out), iter(pages), image)
        return
    for format in FORMATS:
        with suppress(ConfigError):  # PNG cannot store every image
            encode_image(io.BytesIO(), iter(pages), image, format=format)


def _mask(path: Path) -> None:
    read_mask(path, sound_image())


@cache
def sound_image() -> Any:
    """Return an image of 20 x 30 pixels, the size of the masks in `fuzz_inputs.py`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.png")
        path.write_bytes(saved(texture(20, 30), "PNG"))
        return read_image(path)


@cache
def sound_table() -> Any:
    """Return a table with every kind of column."""
    return mixed(24)


def _model(path: Path) -> None:
    """Load a model and score a table with it."""
    assert np.isfinite(score(load_model(path), sound_table()).rows.scores).all()


def _dictionary(path: Path) -> None:
    DictionaryDenoiser.load(path).denoise(np.full((5, 5), 0.5))


def _config(path: Path) -> None:
    """Parse a config file for two commands, without running them."""
    refused: list[KpcaError] = []
    for group, name, argument in (("novelty", "screen", "t.csv"), ("denoise", "run", "a.png")):
        command = _commands().commands[group].commands[name]
        try:
            command.make_context(name, [argument, "--config", str(path)])
        except KpcaError as error:
            refused.append(error)
        except UsageError as error:
            message = error.format_message()  # type: ignore[attr-defined]
            refused.append(ConfigError(one_line(message, 400)))
    if len(refused) == 2:
        raise refused[0]


@cache
def _commands() -> Any:
    return typer.main.get_command(app)


def _accept(path: Path) -> None:
    """Read a list of accepted rows and look up these rows in a table."""
    find_reviewed([read_table(path)], sound_table(), _columns(), Execution(), most=MOST)


@cache
def _columns() -> Any:
    return infer_plan(sound_table(), ColumnOptions()).specs


def _marks(path: Path) -> None:
    """Read marks and look up their rows in a table."""
    find_marked(read_marks(path), sound_table(), Execution())


def _rules(path: Path) -> None:
    """Read rules, check a table against them and export them in all formats."""
    rules = read_rules(path)
    reading_lines(rules)
    for export in _EXPORTS.values():
        export(rules)
    checked, broken = check_table_rules(rules, ruled_table(), ColumnOptions(), Execution())
    broken_lines(checked, broken)


@cache
def ruled_table() -> Any:
    """Return a table that breaks each kind of rule."""
    return table_from_frame(ruled_frame(40), "ruled.csv")


def _profile(path: Path) -> None:
    """Read a noise profile and look up the noise of an image."""
    GroupDenoiser(Options(), same=read_profile(path), from_profile=True).of_kind("20 x 30")


def _per_image(path: Path) -> None:
    read_per_image(path, ["a.png", "b.png"], GroupDenoiser(Options()))


def _manifest(path: Path) -> None:
    """Resume a batch from its manifest."""
    finished = finished_batch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "batch")
        shutil.copytree(finished, folder)
        shutil.copyfile(path, folder / "out" / "manifest.jsonl")
        result = run_batch([folder / "in"], folder / "out", denoise=smooth, settings=SETTINGS)
        assert not any(image.bug for image in result.images), result.images[0].bug


@cache
def finished_batch() -> Path:
    """Return the folder of a finished batch; it is removed when the process exits."""
    folder = _kept_folder("batch")
    save(folder / "in", "a.png", picture(0))
    run_batch([folder / "in"], folder / "out", denoise=smooth, settings=SETTINGS)
    return folder


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _kept_folder(name: str) -> Path:
    """Create a folder that is removed when the process exits."""
    _FOLDERS.append(tempfile.TemporaryDirectory())
    folder = Path(_FOLDERS[-1].name, name)
    folder.mkdir()
    return folder


def _finished(path: Path) -> None:
    """Look up a stored part of a table's results."""
    parts = FinishedParts(path.parent / "parts")
    parts.folder.mkdir(exist_ok=True)
    shutil.copyfile(path, parts._path("key 0 5"))
    FinishedPass(parts, "key", np.ndarray).get(0, 5)


def _marker(path: Path) -> None:
    """Decide by a folder's marker file whether a run may replace the folder."""
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(path, folder / MARKER)
    (folder / "report.html").touch()
    OutputFolder(folder, force=True).check()


def _run(path: Path) -> None:
    """Compare a finished run with another."""
    finished, folder = finished_run(), path.parent / "run"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(finished / "scored.csv", folder / "scored.csv")
    shutil.copyfile(path, folder / "result.json")
    diff_runs(finished, folder)


@cache
def finished_run() -> Path:
    """Return the folder of a finished screening; it is removed when the process exits."""
    folder = _kept_folder("screened")
    rng = np.random.default_rng(0)
    columns = {"id": [f"n{k}" for k in range(40)], "a": rng.normal(size=40).round(2)}
    table = pl.DataFrame(columns | {"b": (2 * columns["a"]).round(1), "kind": ["x", "y"] * 20})
    table.write_csv(folder / "t.csv")
    out = folder / "run"
    assert main(["novelty", "screen", str(folder / "t.csv"), "--out", str(out), "--quiet"]) == 0
    return out


TABLES = {
    "csv": "it.csv",
    "jsonl": "it.jsonl",
    "json": "it.json",
    "parquet": "it.parquet",
    "arrow": "it.arrow",
    "packed": "it.csv.gz",
}
IMAGES = "png tiff jpeg other raw fits mrc nifti dicom czi nd2 avif heic".split()
DOORS: dict[str, Door] = {
    "model": Door(_model, "it.kpca"),
    "dictionary": Door(_dictionary, "it.kpca"),
    "config": Door(_config, "it.toml"),
    "accept": Door(_accept, "it.csv"),
    "marks": Door(_marks, "it.html"),
    "rules": Door(_rules, "it.json"),
    "profile": Door(_profile, "it.json"),
    "per_image": Door(_per_image, "it.csv"),
    "manifest": Door(_manifest, "it.jsonl"),
    "finished": Door(_finished, "it.npz"),
    "marker": Door(_marker, "it.json"),
    "run": Door(_run, "it.json"),
    **{name: Door(_table, file) for name, file in TABLES.items()},
    "xlsx": Door(read_table, "it.xlsx"),
    "delta": Door(_folder_of_tables, "table", is_folder=True),
    "hive": Door(_folder_of_tables, "table", is_folder=True),
    "sqlite": Door(_database, "it.db"),
    **{name: Door(_image, "it.dng" if name == "raw" else "it") for name in IMAGES},
    "zarr": Door(_image, "it.zarr", is_folder=True),
    "mask": Door(_mask, "it.png"),
}
