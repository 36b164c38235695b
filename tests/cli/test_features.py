"""Every command and option has a test."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cli.tree import each_command

TESTS = Path(__file__).parents[1]
# Folders that hold no tests.
HELPERS = ("benchmarks", "oracles")


def features() -> Iterator[tuple[str, str]]:
    """Yield (command, "") and (command, option) for every command and option."""
    for words, command in each_command():
        yield words, ""
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                yield words, max(option.opts, key=len)


def words_by_test() -> list[tuple[set[str], set[str]]]:
    """Return, for each test, the strings in the test and the strings in the whole file."""
    tests = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.parent.name in HELPERS:
            continue
        module = ast.parse(path.read_text("utf-8"))
        of_file = {*_words(module), *path.stem.split("_")}
        constants = {
            target.id: set(_words(node.value))
            for node in module.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                own = set(_words(node))
                own = own.union(*(words for name, words in constants.items() if name in own))
                tests.append((own, of_file))
    return tests


def _words(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Dict):  # a dictionary may have options as keys
            for key in child.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield f"--{key.value.replace('_', '-')}"
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield from child.value.replace("=", " ").split()
        elif isinstance(child, ast.Name | ast.arg):
            yield child.id if isinstance(child, ast.Name) else child.arg


def test_every_command_and_option_has_a_test() -> None:
    tests = words_by_test()
    for command, option in features():
        words = set(command.split())
        wanted = option or command.split()[-1]
        assert any(words <= of_file and wanted in own for own, of_file in tests), (command, option)
