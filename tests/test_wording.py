"""Sentences of pages, messages and docstrings are short."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kpca_apps

ROOT, PACKAGE = Path(__file__).parent.parent, Path(kpca_apps.__file__).parent
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted({*(ROOT / "docs").rglob("*.md")} - {*(ROOT / "docs").glob("_build/**/*.md")})
MESSAGES = ROOT / "tests/cli/messages.txt"
MAX_WORDS = 35
FENCED = re.compile(r"^(```+|:::+).*?^\1|\$\$.*?\$\$|<!--.*?-->", re.MULTILINE | re.DOTALL)
# Boundaries between paragraphs, list items, headings, definitions and table cells.
BETWEEN_BLOCKS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|\n(?=#|: |\()|\|")
EXAMPLE_OR_PARAMETER = re.compile(r"(?m)^ *>>>(?:.*\n?)+?(?:\n|\Z)|^-{3,}$|^[\w, *]+ : .*$")
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[\"')*]*\s+")


def long_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of Markdown that are too long; inline code counts as one word."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", FENCED.sub("\n\n", text))
    for block in BETWEEN_BLOCKS.split(re.sub(r"(`+)[^`]+\1", "code", text)):
        for sentence in BETWEEN_SENTENCES.split(" ".join(block.split())):
            if len(re.findall(r"\S*\w\S*", sentence)) > MAX_WORDS:
                yield sentence


def test_a_long_sentence_is_found_and_code_is_one_word() -> None:
    words = ["word"] * MAX_WORDS
    assert [*long_sentences(f"{' '.join(words)}. `{' '.join(words)}`")] == []
    assert len([*long_sentences(f"- {' '.join([*words, 'more'])}.\n- item")]) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_of_pages_are_short(page: Path) -> None:
    assert [*long_sentences(page.read_text(encoding="utf-8"))] == []


def test_sentences_of_messages_are_short() -> None:
    """The semicolon between fault and remedy counts as the end of a sentence."""
    lines = MESSAGES.read_text(encoding="utf-8").splitlines()
    messages = ". ".join(line[7:].replace(";", ".") for line in lines if line.startswith("    "))
    assert [*long_sentences(messages)] == []


def test_sentences_of_docstrings_are_short() -> None:
    long = []
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = EXAMPLE_OR_PARAMETER.sub("\n\n", ast.get_docstring(node) or "")
                long += [f"{room}: {sentence}" for sentence in long_sentences(text)]
    assert long == []
