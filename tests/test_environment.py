"""Output files do not depend on locale, time zone, home, temporary folder or umask."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

# Run commands in a process that sets the user's locale, as Qt and GTK do.
WITH_LOCALE = """
import json, locale, os, sys
locale.setlocale(locale.LC_ALL, "")
from kpca_apps.cli.main import main
for words in json.loads(os.environ["COMMANDS"]):
    if main([word.replace("{out}", sys.argv[1]).replace("{in}", sys.argv[2]) for word in words]):
        sys.exit(1)
"""
DOTLESS = "\N{LATIN SMALL LETTER DOTLESS I}"
TABLE = f"""Größe;Datum;Zeit;{DOTLESS};Preis
1,5;03.02.2024;2024-03-31T02:30:00+02:00;I;1.234,5
2,5;04.02.2024;2024-03-31T03:30:00+02:00;{DOTLESS};1.250,0
"""
COMMANDS = (
    ("novelty", "screen", "{in}/sizes.csv", "--out", "{out}/screened", "--count", "2"),
    ("denoise", "run", "{in}/image.png", "--out", "{out}/denoised", "--quality", "draft"),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table with dates, times, decimal commas and non-ASCII letters, and an image."""
    folder = tmp_path_factory.mktemp("inputs")
    head, *lines = TABLE.splitlines()
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        size, day, clock, letter, price = lines[number % 2].split(";")
        size = f"{rng.normal(5):.2f}".replace(".", ",")
        rows.append(";".join((size, f"{1 + number % 28:02d}{day[2:]}", clock, letter, price)))
    rows[7] = "99,5;05.02.2024;1999-03-31T02:30:00+02:00;I;9.999,5"
    (folder / "sizes.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    noisy = 100 + 20 * rng.standard_normal((40, 48))
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / "image.png")
    return folder


def run_commands(out: Path, inputs: Path, **environment: str | None) -> dict[str, bytes]:
    """Run the commands in an environment (None unsets a variable) and return the files written."""
    out.mkdir()
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    present = {name: value for name, value in settings.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-c", WITH_LOCALE, out, inputs],
        env={**present, "COMMANDS": json.dumps(COMMANDS)},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert b"Traceback" not in done.stderr
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        # These two files contain the time and the host.
        if path.is_file() and path.name not in ("run.json", "manifest.jsonl")
    }


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, inputs: Path) -> dict[str, bytes]:
    return run_commands(tmp_path_factory.mktemp("usual") / "out", inputs)


@pytest.fixture(scope="session")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build locales with decimal commas, with a dotless i, and with a one-byte encoding."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/tr_TR").exists():
        pytest.skip("this machine makes no locales")
    folder = tmp_path_factory.mktemp("locales")
    for name, charmap in (("de_DE", "UTF-8"), ("tr_TR", "UTF-8"), ("de_DE", "ISO-8859-1")):
        target = str(folder / f"{name}.{charmap}")
        subprocess.run(["localedef", "-i", name, "-f", charmap, target], check=True)
    return folder


ASCII = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
LOCALES = ("de_DE.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1")
ZONES = ("Pacific/Kiritimati", "America/St_Johns", "EST5EDT", ":nowhere")
ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    **{name: {"LC_ALL": name, "LANG": name} for name in LOCALES},
    **{name: {"LC_ALL": name, **ASCII} for name in ("C", "POSIX")},
    **{zone: {"TZ": zone} for zone in ZONES},
    "no home": {"HOME": None, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None, "USER": None},
    "home is missing": {"HOME": "/nonexistent/home"},
    "home is a file": dict.fromkeys(("HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME"), "/dev/null"),
    "no TMPDIR": {"TMPDIR": "/dev/null", "TMP": "/dev/null", "TEMP": "/dev/null"},
}


@pytest.mark.release
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_locale_time_zone_or_home_changes_a_byte(
    name: str, tmp_path: Path, inputs: Path, usual: dict[str, bytes], request: pytest.FixtureRequest
) -> None:
    settings = ENVIRONMENTS[name]
    if name in LOCALES:
        settings = settings | {"LOCPATH": str(request.getfixturevalue("locales"))}
    files = run_commands(tmp_path / "out", inputs, **settings)
    assert [*files] == [*usual]
    assert [name for name in files if files[name] != usual[name]] == []


@pytest.mark.release
def test_names_beyond_ascii_are_files_like_others_where_the_locale_has_ascii_alone(
    tmp_path: Path, inputs: Path, usual: dict[str, bytes]
) -> None:
    """Messages may spell the name differently; the scores are the same."""
    named = tmp_path / "Maße"
    shutil.copytree(inputs, named)
    files = run_commands(tmp_path / "out", named, LC_ALL="C", **ASCII)
    assert files["screened/scored.csv"] == usual["screened/scored.csv"]


@pytest.mark.skipif(os.name != "posix", reason="rights of another kind")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_files_and_folders_have_the_rights_of_any_other(mask: int, tmp_path: Path) -> None:
    from kpca_apps import save_model, screen_table

    before = os.umask(mask)
    try:
        files = screen_table({"a": [*range(40)], "b": [i % 7 for i in range(40)]})
        files.save_tables(tmp_path / "out")
        files.save_report(tmp_path / "report.html")
        save_model(files.model, tmp_path / "model.kpca")
    finally:
        os.umask(before)
    for path in tmp_path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert oct(mode) == oct((0o777 if path.is_dir() else 0o666) & ~mask), path.name


# Run a process that records each path it writes to and each address it connects to.
WATCHED = """
import json, os, sys
seen = []
def see(event, arguments):
    if event == "open" and isinstance(arguments[2], int):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and arguments[0] is not None:
            seen.append(["file", os.path.abspath(os.fsdecode(arguments[0]))])
    elif event in ("os.mkdir", "os.rename", "os.link", "os.symlink"):
        seen.append(["file", os.path.abspath(os.fsdecode(arguments[event != "os.mkdir"]))])
    elif event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        seen.append(["network", str(arguments)])
sys.addaudithook(see)
from kpca_apps.cli.main import main
for words in json.loads(os.environ["COMMANDS"]):
    main([word.replace("{out}", sys.argv[1]).replace("{in}", sys.argv[2]) for word in words])
print(json.dumps(seen))
"""


@pytest.mark.release
def test_a_command_writes_to_the_folders_of_the_documentation_and_asks_no_network(
    tmp_path: Path, inputs: Path
) -> None:
    places = {name: tmp_path / name for name in ("out", "home", "temporary")}
    for place in places.values():
        place.mkdir()
    commands = [
        *([*command, "--quiet"] for command in COMMANDS),
        ["novelty", "rules", "{in}/sizes.csv", "--out", "{out}/rules.json", "--quiet"],
        ["denoise", "noise", "{in}/image.png", "--quiet"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, places["out"], inputs],
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "COMMANDS": json.dumps(commands),
            "HOME": str(places["home"]),
            "TMPDIR": str(places["temporary"]),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    seen = json.loads(done.stdout.splitlines()[-1])
    assert [what for kind, what in seen if kind == "network"] == []
    files = {Path(what) for _, what in seen}
    assert places["out"] / "rules.json" in files
    allowed = [*places.values(), Path(os.devnull), Path("/dev/shm")]
    for path in files:
        is_compiled = "__pycache__" in path.parts
        assert is_compiled or any(path.is_relative_to(place) for place in allowed), path
    # No temporary file remains, and the home folder holds only caches.
    assert [*places["temporary"].iterdir()] == []
    assert {path.name for path in places["home"].iterdir()} <= {".cache", ".config"}
