"""Commands that `kinds.py` disturbs or kills, with inputs and outputs of all kinds."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

MOMENTS = ("time", "step")  # kill all processes, at a random time or before a file operation
WITH_OTHERS = (*MOMENTS, "driver", "worker")  # or kill one process: the first, or a child


@dataclass(frozen=True)
class Scene:
    """A command and the faults it is tested with.

    ``words`` are its arguments: inputs are in ``../in``, and ``@`` is the scheduler's address.
    ``share`` is its number of kills among 500, ``earlier`` a command run before, whose result is
    replaced. ``in_parts``: read tables of more than a hundred rows in parts. ``is_drawn``: draw
    pictures, which takes most of the time for a small table. ``keeps`` says what a killed run
    leaves finished: ``"images"``, ``"parts"`` or nothing. ``needs`` is a server, ``"cluster"`` or
    ``"bucket"``; ``requests`` are for a command that is a server.
    """

    name: str
    words: str
    share: int
    earlier: str = ""
    kinds: tuple[str, ...] = MOMENTS
    in_parts: bool = False
    is_drawn: bool = False
    keeps: str = ""
    needs: str = ""
    requests: bytes = b""


def _screening_request() -> bytes:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client |= {"clientInfo": {"name": "faults", "version": "1"}}
    call = {"table": "birds.csv", "out": "o", "replace": True}
    messages: list[dict[str, object]] = [
        {"id": 0, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "screen_table", "arguments": call}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0"} | m).encode() + b"\n" for m in messages)


_ODD = "--share 0.05 --explain 3"
_RUN = "denoise run --quality draft"
SCENES = (
    Scene("screen CSV", f"novelty screen ../in/birds.csv {_ODD} --out o", 25),
    Scene(
        "screen, replacing, all files",
        f"novelty screen ../in/birds.csv {_ODD} --flagged xlsx --format parquet --to-send --force "
        "--out o",
        30,
        earlier="novelty screen ../in/later.csv --out o", is_drawn=True,
    ),
    Scene("screen folder of Parquet in parts", f"novelty screen ../in/parts {_ODD} --out o --force",
          25, in_parts=True),
    Scene("screen in processes", f"novelty screen ../in/large.csv {_ODD} --workers processes "
          "--jobs 2 --out o --force", 20, kinds=WITH_OTHERS, in_parts=True),
    Scene("screen SQLite query, writing to it",
          "novelty screen sqlite:///shop.db --query SELECT~*~FROM~birds~ORDER~BY~name "
          "--write-to scores --out o --force", 30),
    Scene("screen SQLite, replacing a table",
          "novelty screen sqlite:///shop.db --table birds --write-to scores --out o --force", 20,
          earlier="novelty screen sqlite:///shop.db --table birds --count 9 --write-to scores "
          "--out o"),
    Scene("screen DuckDB, writing to it",
          "novelty screen duckdb:///shop.duckdb#birds --write-to scores --out o --force", 15),
    Scene("screen each of a folder", "novelty screen ../in/each --each --out o --force", 15),
    Scene("screen bucket to bucket",
          "novelty screen s3://kpca-tests/in/birds.csv --out s3://kpca-tests/out/o --force", 15,
          needs="bucket"),
    Scene("fit, replacing", "novelty fit ../in/later.csv --model m.kpca --force", 25,
          earlier="novelty fit ../in/birds.csv --model m.kpca"),
    Scene("score", "novelty score ../in/m.kpca ../in/later.csv --out o --force", 20,
          earlier="novelty score ../in/m.kpca ../in/birds.csv --out o"),
    Scene("explain", "novelty explain ../in/m.kpca ../in/birds.csv --row 3", 5),
    Scene("rules", "novelty rules ../in/birds.csv --out rules.json --force", 20,
          earlier="novelty rules ../in/later.csv --out rules.json"),
    Scene("diff", "novelty diff ../in/first ../in/second --out o --force", 20),
    Scene("compare", "novelty compare ../in/birds.csv --label kind --positive odd --out o --force",
          10),
    Scene("screen with Dask, resumed by --work-dir",
          f"novelty screen ../in/large.csv {_ODD} --workers dask --jobs 2 --work-dir work --out o "
          "--force", 8, kinds=WITH_OTHERS, in_parts=True, keeps="parts"),
    Scene("screen on a cluster, resumed by --work-dir",
          f"novelty screen ../in/large.csv {_ODD} --scheduler @ --work-dir work --out o --force",
          40, kinds=(*MOMENTS, "cluster"), in_parts=True, keeps="parts", needs="cluster"),
    Scene("denoise images", f"{_RUN} ../in/images --jobs 1 --out o", 30, keeps="images"),
    Scene("denoise images in processes", f"{_RUN} ../in/images --jobs 2 --out o", 30,
          kinds=WITH_OTHERS, keeps="images"),
    Scene("denoise images with Dask", f"{_RUN} ../in/images --workers dask --jobs 2 --out o", 4,
          kinds=WITH_OTHERS, keeps="images"),
    Scene("denoise images on a cluster", f"{_RUN} ../in/images --scheduler @ --out o", 16,
          kinds=(*MOMENTS, "cluster"), keeps="images", needs="cluster"),
    Scene("denoise images, replacing", f"{_RUN} ../in/images --sigma 9 --jobs 1 --force --out o",
          20, earlier=f"{_RUN} ../in/images --jobs 1 --out o", keeps="images"),
    Scene("denoise stacks", f"{_RUN} ../in/stacks --stack --jobs 1 --out o", 20, keeps="images"),
    Scene("denoise OME-Zarr", f"{_RUN} ../in/zarr --jobs 1 --out o", 20, keeps="images"),
    Scene("denoise OME-Zarr, replacing",
          f"{_RUN} ../in/zarr --sigma 9 --jobs 1 --force --out o", 10,
          earlier=f"{_RUN} ../in/zarr --jobs 1 --out o", keeps="images"),
    Scene("denoise raw files to DNG", f"{_RUN} ../in/raw --raw-out dng --jobs 1 --out o", 10,
          keeps="images"),
    Scene("denoise fit", "denoise fit ../in/images --sigma 20 --patch-size 6 --max-examples 100 "
          "--model d.kpca --force", 10,
          earlier="denoise fit ../in/images --sigma 20 --patch-size 6 --max-examples 50 "
          "--model d.kpca"),
    Scene("denoise noise", "denoise noise ../in/images --save n.json --force", 5),
    Scene("serve an assistant", "mcp --root . --root ../in", 5, requests=_screening_request()),
    Scene("papers", "papers run concentric --out o --force", 5),
)  # fmt: skip
# Commands that make further inputs; they run undisturbed.
PREPARED = (
    "novelty fit birds.csv --model m.kpca",
    "novelty screen birds.csv --out first",
    "novelty screen later.csv --out second",
)


def make_inputs(folder: Path) -> None:
    import duckdb
    import tifffile

    from tests.benchmarks.golden_data import write_mosaic
    from tests.denoise.toy import save
    from tests.images.laboratory.test_ome_zarr import made as made_zarr
    from tests.novelty.tables import frame_of

    frame_of(160, odd=5).write_csv(folder / "birds.csv")
    frame_of(120, 1, odd=3).write_csv(folder / "later.csv")
    frame_of(700, 2, odd=9).write_csv(folder / "large.csv")
    for name in ("parts", "each", "images", "stacks", "zarr", "raw"):
        (folder / name).mkdir()
    for number in range(3):
        frame_of(90, 3 + number, odd=2).write_parquet(folder / "parts" / f"{number}.parquet")
        frame_of(60, 6 + number, odd=2).write_csv(folder / "each" / f"{number}.csv")
    birds = frame_of(160, odd=5)
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.execute("CREATE TABLE birds (name PRIMARY KEY, wing, bill, mass, colour, kind)")
        database.executemany("INSERT INTO birds VALUES (?, ?, ?, ?, ?, ?)", birds.rows())
    with duckdb.connect(str(folder / "shop.duckdb")) as other:
        other.register("given", birds.to_arrow())
        other.execute("CREATE TABLE birds AS SELECT * FROM given")
    rng = np.random.default_rng(0)
    wave = 120 + 60 * np.sin(np.arange(48) / 5)
    noisy = wave + rng.normal(0, 12, (8, 48, 48))
    for number, page in enumerate(noisy):
        save(folder / "images", f"{number % 2}/{number}.png", np.clip(page, 0, 255).astype("u1"))
    for number in range(3):
        pages = (wave + rng.normal(0, 12, (3, 40, 48))).astype("f4")
        tifffile.imwrite(folder / "stacks" / f"{number}.tif", pages)
        slices = 10 * pages[None, :2].astype("u2")
        made_zarr(folder / "zarr" / f"{number}.zarr", slices, chunks=(1, 1, 20, 48))
        light = np.kron(wave[None, :, None] / 255, np.ones((96, 2, 3)))
        write_mosaic(folder / "raw" / f"{number}.dng", light, rng)


def read_small_parts() -> None:
    """Read tables of more than a hundred rows in parts; the usual limit is 100,000 rows."""
    import kpca_apps.cli.novelty.run as run

    run.open_table = partial(run.open_table, in_memory_rows=100, part_rows=64)


def skip_pictures() -> None:
    """Make commands draw no figures, neither in pages nor as files."""
    from markupsafe import Markup

    import kpca_apps.report.denoising.figures as of_batches
    import kpca_apps.report.drawing as drawing
    import kpca_apps.report.novelty.figures as of_tables

    drawing.to_svg = lambda drawing: Markup("<svg/>")  # type: ignore[assignment]
    of_batches.denoising_figures = lambda result: {}  # type: ignore[assignment]
    of_tables.SCREENING = ()
    of_tables.column_plane = lambda result: None  # type: ignore[assignment]


def log_parts(log: Path) -> Callable[[], None]:
    """Return a function that makes a process log its finished parts by file name."""

    def change() -> None:
        from kpca_apps.system.finished import FinishedParts

        put = FinishedParts.put

        def noted(self: FinishedParts, key: str, content: bytes) -> None:
            put(self, key, content)
            with log.open("a") as file:
                file.write(f"{self._path(key).name}\n")

        FinishedParts.put = noted  # type: ignore[method-assign]

    return change


def split_command(line: str, scheduler: str = "") -> list[str]:
    """Split a command into arguments: ``@`` stands for an address, ``~`` for a space."""
    return [word.replace("@", scheduler).replace("~", " ") for word in line.split()]


# Files next to a database while it is written.
_BESIDE = (".db-journal", ".wal")
Units = dict[str, dict[str, object]]
_OF_TIMES = ("started", "finished", "seconds", "seconds of images", "resumed")


def results(folder: Path, in_store: Mapping[str, bytes]) -> Units:
    """Return results with final names, in units that must appear whole: a folder, file or table.

    Times are ignored, and so are files whose names mark them as unfinished.
    """
    units: Units = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            unit = unit_of(name)
            if unit:
                units.setdefault(unit, {})[name.as_posix()] = _content(path)
    # A store has no renames: a result is complete once its last file exists.
    if "out/o/run.json" in in_store:
        units["bucket"] = {
            name: _without_times(data) if name.endswith("run.json") else data
            for name, data in in_store.items()
            if not name.endswith(".partial")
        }
    return units


def unit_of(name: Path) -> str:
    """Return the name of the result that a file is a part of; "" if it is part of none."""
    parts = name.parts
    if parts[0] == "work" or name.suffix in _BESIDE:
        return ""
    if parts[:2] == ("o", "images"):
        zarr = next((n for n, part in enumerate(parts) if part.endswith(".zarr")), len(parts))
        return "" if name.name == "manifest.jsonl" else "/".join(parts[: zarr + 1])
    return "/".join(parts[:2]) if parts[:2] == ("o", "report") else parts[0]


def _content(path: Path) -> object:
    if path.suffix in _DATABASES:
        # Open a copy: opening the original would roll back what a killed process left.
        with tempfile.TemporaryDirectory() as aside:
            for file in path.parent.glob(f"{path.name}*"):
                shutil.copy(file, aside)
            return _DATABASES[path.suffix](Path(aside, path.name))
    data = path.read_bytes()
    return _without_times(data) if path.name == "run.json" else data


def _without_times(data: bytes) -> object:
    return {name: value for name, value in json.loads(data).items() if name not in _OF_TIMES}


def _of_sqlite(path: Path) -> object:
    with closing(sqlite3.connect(path)) as database:
        (sound,) = database.execute("PRAGMA integrity_check").fetchone()
        assert sound == "ok", sound
        return list(database.iterdump())


def _of_duckdb(path: Path) -> object:
    import duckdb

    # One thread: a process with more could not be forked.
    with duckdb.connect(str(path), config={"threads": 1}) as database:
        names = [name for (name,) in database.execute("SHOW TABLES").fetchall()]
        return {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


_DATABASES = {".db": _of_sqlite, ".duckdb": _of_duckdb}
