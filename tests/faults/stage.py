"""Run commands of `scenes.py`; check what they leave behind if killed or disturbed."""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpca_apps.denoise.batch.manifest import RECORDS
from tests.faults.forked import Command, import_modules, start
from tests.faults.scenes import (
    PREPARED,
    Scene,
    Units,
    log_parts,
    make_inputs,
    read_small_parts,
    results,
    skip_pictures,
    split_command,
)
from tests.faults.servers import BUCKET

_UNFINISHED = re.compile(r"\..+\.(partial|old)")
# Modules imported once, before processes are forked.
_LOADED = frozenset(
    "kpca_apps polars pyarrow numpy scipy sklearn matplotlib numba llvmlite PIL tifffile "
    "imagecodecs jinja2 xlsxwriter msgspec joblib rich typer skimage duckdb".split()
)  # fmt: skip


class LossError(Exception):
    """Data was lost, or an incomplete result remained."""


@dataclass
class Stage:
    """Folders and server addresses for the commands that are run and disturbed."""

    folder: Path
    temporary: Path  # the folder for temporary files of all commands
    cluster: str = ""
    workers: Callable[[], list[int]] = list
    store: Any = None

    def create_folder(self, scene: Scene, name: str) -> Path:
        """Create a folder in its initial state, with databases and earlier results."""
        folder = self.folder / name
        folder.mkdir()
        for name_in_store in self._in_store():
            self.store.delete_object(Bucket=BUCKET, Key=name_in_store)
        for database in ("shop.db", "shop.duckdb"):
            if f"/{database}" in scene.words:
                shutil.copy(self.folder / "in" / database, folder)
        if scene.keeps == "parts":
            (folder / "work").mkdir()
        if scene.earlier:
            earlier = self.folder / "earlier" / scene.name.replace("/", " ")
            if not earlier.exists():
                earlier.parent.mkdir(exist_ok=True)
                self.wait_for_success(self.start(scene, scene.earlier, folder))
                shutil.copytree(folder, earlier)
                return folder
            shutil.rmtree(folder)
            shutil.copytree(earlier, folder)
        return folder

    def start(
        self,
        scene: Scene,
        line: str,
        folder: Path,
        *,
        prepare: tuple[Callable[[], object], ...] = (),
        step: int = 0,
        note: Path | None = None,
        number: int = 0,
    ) -> Command:
        self.temporary.mkdir(exist_ok=True)
        if not scene.is_drawn:
            prepare = (*prepare, skip_pictures)
        if scene.in_parts:
            prepare = (*prepare, read_small_parts)
        if scene.keeps == "parts":
            prepare = (*prepare, log_parts(self.folder / "parts-done"))
        words = split_command(line, self.cluster)
        return start(
            words,
            folder,
            self.temporary,
            number=number,
            prepare=prepare,
            step=step,
            note=note,
            requests=scene.requests,
        )

    def wait_for_success(self, command: Command) -> None:
        if (code := command.wait()) != 0:
            errors = command.err.read_text()
            raise LossError(f"exit code {code}, stderr: {errors[-700:]!r}")
        command.wait_for_children()

    def results(self, folder: Path) -> Units:
        """Return results under final names, in a folder and in the bucket."""
        return results(folder, {name: self._of_store(name).read() for name in self._in_store()})

    def _in_store(self) -> list[str]:
        """Return what commands wrote to the bucket below ``out/``."""
        if self.store is None:
            return []
        listed = self.store.list_objects_v2(Bucket=BUCKET, Prefix="out/")
        return [entry["Key"] for entry in listed.get("Contents", ())]

    def _of_store(self, name: str) -> Any:
        return self.store.get_object(Bucket=BUCKET, Key=name)["Body"]


@dataclass
class Played:
    """A scene played undisturbed: its results and duration."""

    scene: Scene
    before: Units
    whole: Units
    seconds: float
    n_steps: int
    n_bytes: int  # bytes written by the command
    parts: set[str]


def play(stage: Stage, scene: Scene, *, is_timed: bool) -> Played:
    """Run a command undisturbed; if its time matters, run it again with warm imports."""
    for name in ("first", "timed") if is_timed else ("first",):
        folder = stage.create_folder(scene, name)
        before, n_before = stage.results(folder), _n_bytes(folder)
        note, log = stage.folder / "note", stage.folder / "parts-done"
        log.unlink(missing_ok=True)
        began = time.monotonic()
        command = stage.start(scene, scene.words, folder, note=note)
        if command.wait() != 0:
            raise LossError(f"stderr of the undisturbed run: {command.err.read_text()[-500:]!r}")
        seconds = time.monotonic() - began
        command.wait_for_children()
        steps, *modules = note.read_text().split("\n")
        import_modules(module for module in modules if module.partition(".")[0] in _LOADED)
        whole = stage.results(folder)
        n_bytes = _n_bytes(folder) - (0 if scene.earlier else n_before)
        parts = set(log.read_text().split()) if log.exists() else set()
        shutil.rmtree(folder)
    return Played(scene, before, whole, seconds, int(steps), n_bytes, parts)


@dataclass(frozen=True)
class Rest:
    """What a disturbed command left: results under final names, and parts for the next run."""

    units: Units
    images: dict[str, tuple[int, int]]  # inode and time of each image
    parts: set[str]


def check(played: Played, stage: Stage, folder: Path, *, was_killed: bool = True) -> Rest:
    """Check that all files are complete, except those whose names mark them as unfinished.

    A command that was not killed leaves no unfinished files, but records of the images it finished.
    """
    units = stage.results(folder)
    for unit in {*units, *played.before}:
        if units.get(unit) not in (played.before.get(unit), played.whole.get(unit)):
            raise LossError(f"{unit} is neither as before nor whole")
    for path in folder.rglob("*"):
        hidden = [part for part in path.relative_to(folder).parts if part.startswith(".")]
        is_unfinished = was_killed and any(map(_UNFINISHED.fullmatch, hidden))
        if hidden and not is_unfinished and RECORDS not in hidden:
            raise LossError(f"{path.relative_to(folder)} is left")
    done = {
        name
        for unit, files in units.items()
        if played.scene.keeps == "images"
        and unit.startswith("o/images")
        and files == played.whole.get(unit) != played.before.get(unit)
        for name in files
    }
    images = {name: stamp for name, stamp in _stamps(folder).items() if name in done}
    return Rest(units, images, {path.name for path in folder.glob("work/kpca-finished/*.msgpack")})


def rerun(
    played: Played,
    stage: Stage,
    folder: Path,
    rest: Rest,
    *,
    prepare: tuple[Callable[[], object], ...] = (),
    then: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Rerun a disturbed command; check that its results equal those of an undisturbed run.

    The rerun must not repeat finished work or leave temporary files.
    """
    scene, log = played.scene, stage.folder / "parts-done"
    log.unlink(missing_ok=True)
    is_whole = rest.units.get("o") == played.whole.get("o") is not None
    # Only --force replaces a complete result. If it is added here, run.json records it and differs
    # from the run.json of the undisturbed run.
    replaces = "--force" in scene.words or scene.requests
    more = " --force" if is_whole and not replaces else ""
    stage.wait_for_success(stage.start(scene, scene.words + more, folder, prepare=prepare))
    then(folder)
    if not more and (found := stage.results(folder)) != played.whole:
        raise LossError(f"the next run left {_differences(found, played.whole)}")
    stamps = _stamps(folder)
    if any(stamps.get(name) != stamp for name, stamp in rest.images.items()):
        raise LossError("images that were done were done again")
    done = set(log.read_text().split()) if log.exists() else set()
    if done != played.parts - rest.parts:
        raise LossError(
            f"{len(done & rest.parts)} parts were done again, {len(done - played.parts)} others"
        )
    hidden = [path for path in folder.rglob("*") if path.name.startswith(".")]
    temporary = [path for path in stage.temporary.iterdir() if not path.name.startswith("std")]
    if found_after := [*hidden, *temporary, *folder.glob("work/*")]:
        raise LossError(f"the next run left {[str(path) for path in found_after[:5]]}")
    shutil.rmtree(folder)


def _n_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _differences(found: Units, whole: Units) -> str:
    names = {
        name
        for unit in {*found, *whole}
        for name in {*found.get(unit, {}), *whole.get(unit, {})}
        if found.get(unit, {}).get(name) != whole.get(unit, {}).get(name)
    }
    return f"other {', '.join(sorted(names)[:5])}"


def prepare(stage: Stage, scenes: Iterable[Scene]) -> None:
    """Prepare the inputs of scenes in child processes, so that this process starts no threads."""
    folder = stage.folder / "in"
    folder.mkdir()
    stage.temporary.mkdir()
    child = os.fork()
    if not child:
        code = 1
        try:
            make_inputs(folder)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        sys.exit("the inputs could not be made")
    lines = [line for scene in scenes for line in (scene.words, scene.earlier)]
    for line in PREPARED:
        if any(f"in/{line.split()[-1]} " in other for other in lines):
            command = start(line.split(), folder, stage.temporary, prepare=(skip_pictures,))
            stage.wait_for_success(command)
