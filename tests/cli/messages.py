"""Use every option of every command wrongly, and record the messages.

`python -m tests.cli.messages` prints the table of `messages.txt`. After a new option or a changed
message, write it again and read the changes as a stranger would: does each line name the option,
say what is wrong, and what to do?
"""

import contextlib
import io
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from kpca_apps.cli.main import main
from kpca_apps.denoise.passes.warming import warm_up
from tests.cli.tree import each_command
from tests.novelty.tables import frame_of

TABLE = Path(__file__).with_name("messages.txt")
# Arguments of each command besides the option under test.
CALLS = {
    "novelty screen": "birds.csv",
    "novelty fit": "birds.csv --model new.kpca",
    "novelty score": "m.kpca birds.csv",
    "novelty explain": "m.kpca birds.csv --row 1",
    "novelty compare": "birds.csv --label kind",
    "novelty rules": "birds.csv",
    "novelty diff": "first second",
    "denoise run": "images",
    "denoise fit": "tiles --model new.kpca",
    "denoise noise": "images",
    "papers list": "",
    "papers run": "usps",
    "papers fetch": "data",
    "schema": "",
    "mcp": "--root .",
}
# Invalid values by option, or by command and option. Options that take any text have none.
WRONG: dict[str, list[str]] = {
    "--accept": ["no.csv", "images"],
    "--alpha": ["many", "0", "1", "nan"],
    "--as-of": ["1", "yesterday"],
    "--bad-lines": ["drop"],
    "--bandwidth": ["many", "0", "nan"],
    "--by": ["wingg"],
    "--calibration": ["some"],
    "--categorical": ["wingg"],
    "--chroma": ["many", "-1", "nan"],
    "--components": ["many", "-1", "1.5"],
    "--config": ["no.toml", "birds.csv", "images", "odd.toml"],
    "--content": ["page"],
    "--count": ["many", "0", "1.5"],
    "--data": ["no", "birds.csv"],
    "--data-range": ["many", "0", "nan"],
    "--delimiter": ["ab", "1"],
    "--encoding": ["no"],
    "--examples-sigma": ["many", "-1", "nan"],
    "--exclude": ["wingg"],
    "--explain": ["many", "-1"],
    "--fdr": ["many", "0", "1"],
    "--flagged": ["pdf"],
    "--format": ["pdf"],
    "--hide": ["wingg"],
    "--id": ["wingg"],
    "--jobs": ["many", "0", "1.5"],
    "--junit": ["birds.csv", "no/a.xml", "images"],
    "--label": ["wingg"],
    "--landmarks": ["many", "1"],
    "--largest": ["many", "0"],
    "--layout": ["found"],
    "--learn-from": ["few"],
    "--line": ["many", "999"],
    "--luma": ["many", "-1"],
    "--marks": ["no.html", "birds.csv", "page.html"],
    "--mask": ["no.png", "images"],
    "--method": ["sigmoid"],
    "--max-examples": ["many", "0"],
    "--model": ["birds.csv", "images", "no/m.kpca"],
    "--noise": ["pink"],
    "--numeric": ["wingg", "colour"],
    "--out": ["birds.csv", "no/out"],
    "--patch-size": ["many", "0", "999"],
    "--per-image": ["no.csv", "birds.csv", "options.csv"],
    "--positive": ["no"],
    "--profile": ["no.json", "birds.csv"],
    "--quality": ["best"],
    "--query": ["'SELECT 1'"],
    "--raw-out": ["png"],
    "--reference": ["no.csv", "images"],
    "--region": ["many", "1,2,3", "0,0,0,0", "-1,0,5,5"],
    "--ridge": ["many", "0"],
    "--root": ["no", "birds.csv"],
    "--row": ["999", "no"],
    "--rules": ["no.json", "birds.csv", "odd.json"],
    "--save": ["birds.csv", "no/n.json"],
    "--scheduler": ["many", "tcp://127.0.0.1:9"],
    "--seed": ["many", "-1", "4294967296"],
    "--share": ["many", "0", "1", "nan"],
    "--sheet": ["2"],
    "--sigma": ["many", "-1", "nan"],
    "--skip-rows": ["many", "-1", "999"],
    "--stride": ["many", "0"],
    "--strength": ["many", "2", "nan"],
    "--table": ["birds"],
    "--timeout": ["many", "0", "5"],
    "--work-dir": ["work", "birds.csv"],
    "--workers": ["few"],
    "--write-to": ["scores"],
}
# Options that contradict each other, or need one that is missing.
TOGETHER = {
    "novelty screen": [
        "--share 0.1 --count 3",
        "--alpha 0.1 --fdr 0.1 --reference birds.csv",
        "--alpha 0.1",
        "--fdr 0.1",
        "--calibration split",
        "--positive odd",
        "--label kind --exclude kind",
        "--label kind --id kind",
        "--label kind --by kind",
        "--id name --exclude name",
        "--categorical mass --numeric mass",
        "--exclude mass --numeric mass",
        "--exclude colour --by colour",
        "--exclude wing --exclude bill --exclude mass --exclude colour --exclude kind",
        "--by mass",
        "--sigma 1",
        "--components 3",
        "--method hoffmann --ridge 0.1",
        "--method hoffmann --calibration leave-one-out",
        "--method hoffmann --components 2.5",
        "--method hoffmann --components 9999",
        "--method hoffmann --by kind",
        "--each --marks page.html",
        "--each --dry-run --json",
        "--each --write-to scores",
        "--work-dir work --workers threads",
        "--workers threads --scheduler tcp://127.0.0.1:9",
        "--reference birds.csv --learn-from all --count 9999",
        "--out m.kpca --force",
        "--out birds.csv --force",
        "--dayfirst --monthfirst",
        "--config two.toml",
        "no.csv",
        "images",
        "--accept - --reference -",
        "sqlite:///shop.db",
    ],
    "novelty fit": ["--model m.kpca", "--share 0.1 --alpha 0.1"],
    "novelty score": ["--share 0.1 --alpha 0.1", "--fdr 0.1 --positive odd"],
    "novelty compare": ["--positive odd --exclude kind", "--exclude kind"],
    "novelty rules": [
        "--json --format sql",
        "--rules rules.json --exclude mass",
        "--rules rules.json --dayfirst",
        "--out birds.csv --force",
        "--out rules.json",
    ],
    "novelty diff": ["first second --out third"],
    "denoise run": [
        "--compare",
        "--model d.kpca --quality fast",
        "--model d.kpca --preview",
        "--model d.kpca --mask mask.png",
        "--model d.kpca --noise poisson",
        "--stack --noise camera",
        "--stack --preview",
        "--same-noise --sigma 3",
        "--same-noise --noise poisson",
        "--same-noise --preview",
        "--same-noise --stack",
        "--profile noise.json --sigma 3",
        "--profile noise.json --same-noise",
        "--region 0,0,9,9 --preview",
        "--method linear --bandwidth 2",
        "--sigma 3 --noise poisson --strength 2",
        "--workers processes --scheduler tcp://127.0.0.1:9",
        "--out images",
        "no.png",
    ],
    "denoise fit": ["--stride 2", "--patch-size 4 --stride 9", "--model m.kpca"],
    "denoise noise": ["--save images/a.png --force", "no.png"],
    "papers run": ["--out birds.csv --force"],
}
# Argument lists that lack a required argument.
LACKING = {
    "novelty screen": [""],
    "novelty fit": ["birds.csv", "--model new.kpca"],
    "novelty score": ["", "m.kpca"],
    "novelty explain": ["m.kpca birds.csv", "m.kpca --row 1", "m.kpca birds.csv --row 1 --line 2"],
    "novelty compare": ["birds.csv", "--label kind"],
    "novelty rules": [""],
    "novelty diff": ["", "first"],
    "denoise run": [""],
    "denoise fit": ["tiles", "--model new.kpca"],
    "denoise noise": [""],
    "papers run": ["", "no"],
    "papers fetch": [""],
    "schema": ["no"],
    "mcp": [""],
    "novelty": ["scren"],
}
# Wrong calls on tables in a database.
SHOP = "sqlite:///shop.db"
OF_DATABASES = [
    f"{SHOP} --table no",
    f"{SHOP} --table birds --query SELECT",
    f"{SHOP} --query ''",
    f"{SHOP} --query 'DELETE FROM birds'",
    f"{SHOP} --query 'SELECT no FROM birds'",
    f"{SHOP} --query 'SELECT * FROM birds WHERE wing > 9999'",
    f"{SHOP} --table birds --as-of 1",
    f"{SHOP} --table birds --sheet 2",
    f"{SHOP} --table birds --write-to birds",
    f"{SHOP} --table birds --write-to ''",
    f"{SHOP} --query 'SELECT * FROM birds, birds AS b, birds AS c, birds AS d' --timeout 0.01",
    f"{SHOP}#birds --table birds",
    "sqlite:///no.db --table birds",
    "sqlite:///birds.csv --table birds",
    "postgresql://ada@127.0.0.1:9/no --table birds",
    "postgresql://ada:secret@127.0.0.1:9/no --table birds",
    "mysql://ada@127.0.0.1/no --table birds",
]


# Parts of messages from libraries, whose wording differs between library versions.
OF_LIBRARIES = (
    "Missing ", "No such command", "does not take a value", "is not one of", "options must be TOML",
    "not a usable", " says: ",
)  # fmt: skip
# Options that accept any text.
ANY_TEXT = {("mcp", "--hide")}


class Case(NamedTuple):
    """One wrong call of a command: its correct words and its wrong ones."""

    command: str
    right: str
    wrong: str

    @property
    def words(self) -> list[str]:
        return shlex.split(f"{self.command} {self.right} {self.wrong}")


class Reply(NamedTuple):
    """How a call ended: its exit code, output, and the files it wrote."""

    code: int
    out: str
    err: str
    wrote: list[str]


def cases(command: str, parameters: list[Any]) -> Iterator[Case]:
    """Yield wrong calls of a command: single options, combinations, and missing arguments."""
    right = CALLS[command]
    for option in parameters:
        flags = [flag for flag in (*option.opts, *option.secondary_opts) if flag.startswith("--")]
        if not flags or option.name == "help":
            continue
        if option.is_flag:
            yield from (Case(command, right, f"{flag}=yes") for flag in flags)
            continue
        (flag,) = flags
        rest = without(without(right, flag), "--row") if flag == "--line" else without(right, flag)
        yield Case(command, rest, flag)
        yield Case(command, rest, f"{flag} {flag}")
        if (command, flag) not in ANY_TEXT:
            yield from (Case(command, rest, f"{flag} {value}") for value in ["''", *WRONG[flag]])
    for words in TOGETHER.get(command, ()):
        yield Case(command, right if words.startswith("-") else "", words)
    yield from (Case(command, "", words) for words in LACKING.get(command, ()))
    if command == "novelty screen":
        yield from (Case(command, "", words) for words in OF_DATABASES)


def without(words: str, flag: str) -> str:
    """Remove an option and its value from words."""
    left = words.split()
    if flag in left:
        place = left.index(flag)
        del left[place : place + 2]
    return " ".join(left)


def make_inputs() -> None:
    """Create the files that the calls name in the working folder."""
    frame_of(60, odd=3).write_csv("birds.csv")
    with contextlib.closing(sqlite3.connect("shop.db")) as shop, shop:
        shop.execute("CREATE TABLE birds (name TEXT, wing REAL, bill REAL)")
        shop.execute("CREATE TABLE eggs (name TEXT, size REAL)")
        rows = frame_of(60).select("name", "wing", "bill").rows()
        shop.executemany("INSERT INTO birds VALUES (?, ?, ?)", rows)
    for name in ("images", "tiles", "work"):
        Path(name).mkdir()
    draw = np.random.default_rng(0)
    pixels = np.clip(120 + draw.normal(0, 20, (24, 28)), 0, 255).astype(np.uint8)
    images = {"images/a.png": pixels, "mask.png": pixels}
    images |= {f"tiles/{k}.png": pixels[k : k + 8, k : k + 8] for k in range(12)}
    for name, picture in images.items():
        Image.fromarray(picture).save(name)
    texts = {"odd.json": "{", "odd.toml": "shaer = 1", "two.toml": "share = 0.1\ncount = 3"}
    texts |= {"options.csv": "file,strength\na.png,9\n", "noise.json": "{}"}
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    for words in (
        "novelty fit birds.csv --model m.kpca",
        "novelty screen birds.csv --out first",
        "novelty screen birds.csv --out second --share 0.1",
        "novelty screen birds.csv --out third --share 0.2",
        "novelty rules birds.csv --out rules.json",
        "denoise fit tiles --model d.kpca --components 2 --bandwidth 4 --sigma 9",
    ):
        if main(shlex.split(words)):
            raise RuntimeError(words)
    Path("page.html").write_bytes(Path("first/report.html").read_bytes())


def files() -> dict[str, tuple[int, int]]:
    """Return every path below the working folder, with its size and time."""
    stats = {str(path): path.stat() for path in sorted(Path().rglob("*"))}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def call(case: Case) -> Reply:
    """Run a call in the working folder, which holds every file that it names."""
    before = files()
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        code = main(case.words)
    after = files()
    wrote = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    for path in map(Path, wrote):
        if str(path) not in before and path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Reply(code, out.getvalue(), err.getvalue(), wrote)


def as_table(replies: dict[Case, Reply]) -> str:
    """Format the calls; those that differ only in their command share an entry."""
    commands: dict[tuple[str, int, str], list[str]] = {}
    for case, reply in replies.items():
        message = reply.err.removeprefix("error: ").replace(f"kpca {case.command}", "kpca COMMAND")
        wrong = (
            shlex.join(case.words[len(case.command.split()) :]) if not case.right else case.wrong
        )
        commands.setdefault((wrong, reply.code, message.rstrip("\n")), []).append(case.command)
    lines = [
        f"{wrong or '(nothing)'}   [{', '.join(names)}]\n    {code}  {message}\n"
        for (wrong, code, message), names in sorted(commands.items())
    ]
    return "".join(lines)


def replies_in(folder: Path, *commands: str) -> dict[Case, Reply]:
    """Create input files in a folder; there, call some commands, or all, with wrong options."""
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        make_inputs()
    return {
        case: call(case)
        for name, command in each_command()
        if not commands or name in commands
        for case in cases(name, command.params)
    } | {
        case: call(case)
        for name in {*LACKING} - {*CALLS}
        for case in [Case(name, "", words) for words in LACKING[name]]
    }


if __name__ == "__main__":
    warm_up(lambda: None)  # no message on compiling
    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(as_table(replies_in(Path(name), *sys.argv[1:])))
