"""Imports keep to their contracts, no file names a local path, and the README is correct."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = {".py", ".md", ".toml", ".html", ".css", ".js", ".json", ".csv", ".cfg", ""}


def told_commands(repository: Path) -> list[list[str]]:
    """Return every ``kpca ...`` command of the README and the documentation as a list of words."""
    pages = (repository / "README.md", *(repository / "docs").glob("*/*.md"))
    readme = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    fenced = re.findall(r"^```sh\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    quoted = re.findall(r"`(kpca [^`]+)`", readme)
    parts = [part.strip() for block in fenced for part in re.split(r"&&|\n", block)]
    calls = [part for part in [*parts, *quoted] if re.match(r"(\S*/)?kpca ", part)]
    commands = [shlex.split(part, comments=True) for part in calls]
    return [words[1:] for words in commands if Path(words[0]).name == "kpca"]


def test_imports_keep_the_arrows_between_rooms(repository: Path) -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_machine_specific_path_is_in_the_repository(repository: Path) -> None:
    roots = "|".join(("home", "root", "opt", "work", "Users", "mnt"))
    # An absolute path below one of these roots, not part of a URL or a relative path.
    pattern = re.compile(rf"(?<![\w./:-])/(?:{roots})/\w")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [repository / name for name in listed.stdout.split("\0") if name]
    assert [
        str(path)
        for path in paths
        if path.is_file()
        and path.suffix in TEXT
        and pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    ] == []


def command_of(words: list[str]) -> tuple[str, ...]:
    """Return the words that name a command: its group, if any, and its name."""
    from kpca_apps.cli.main import app

    alone = [command.name for command in app.registered_commands]
    return tuple(words[: 1 if words[0] in alone else 2])


def test_readme_names_every_command(repository: Path) -> None:
    from kpca_apps.cli.main import app

    groups = {group.name: group.typer_instance for group in app.registered_groups}
    available = {
        (group, command.name or command.callback.__name__.replace("_", "-"))
        for group, instance in groups.items()
        if instance is not None
        for command in instance.registered_commands
        if command.callback is not None
    }
    assert available
    available |= {(command.name,) for command in app.registered_commands}
    named = {command_of(words) for words in told_commands(repository)} - {(g,) for g in groups}
    assert named == available


def test_readme_options_exist(repository: Path) -> None:
    from typer.testing import CliRunner

    from kpca_apps.cli.main import app

    used: dict[tuple[str, ...], set[str]] = {}
    for words in told_commands(repository):
        options = {word for word in words if word.startswith("--")}
        used.setdefault(command_of(words), set()).update(options)
    for command, options in used.items():
        shown = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(
            app, [*command, "--help"]
        )
        assert shown.exit_code == 0, shown.output
        known = set(re.findall(r"--[a-z][a-z-]*", shown.output))
        assert options <= known, (command, sorted(options - known))


def test_readme_links_and_pictures_exist(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", readme)
    assert targets
    assert [target for target in targets if not (repository / target).exists()] == []


def test_readme_marks_the_two_commands_that_ci_runs(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    for name in ("main", "tests"):
        pattern = rf"^<!-- command: {name} -->\n```sh\n(.+)\n```$"
        assert len(re.findall(pattern, readme, flags=re.MULTILINE)) == 1, name
    ci = (repository / ".ci" / "run").read_text(encoding="utf-8")
    assert "run_readme_command tests" in ci and "run_readme_command main" in ci
