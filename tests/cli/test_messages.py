"""Wrong uses of every option print one line, exit with a usage error and write nothing."""

from pathlib import Path

import pytest

from tests.cli.messages import (
    ANY_TEXT,
    CALLS,
    OF_LIBRARIES,
    TABLE,
    WRONG,
    as_table,
    each_command,
    replies_in,
)

FLAGS = {
    (command, flag): option
    for command, found in each_command()
    for option in found.params
    for flag in option.opts
    if flag.startswith("--") and flag != "--help"
}


def test_each_option_has_wrong_values_that_are_tried() -> None:
    assert {*CALLS} == {command for command, _ in each_command()}
    with_value = {key for key, option in FLAGS.items() if not option.is_flag}
    assert {flag for key in with_value - ANY_TEXT for flag in key[1:]} == {*WRONG}


@pytest.mark.release
@pytest.mark.usefixtures("compiled")
def test_messages_of_wrong_options_are_those_of_the_approved_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KPCA_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    replies = replies_in(tmp_path)
    for case, reply in replies.items():
        assert reply.out == "" and reply.wrote == [], case
        assert reply.err.startswith("error: ") and reply.err.count("\n") == 1, (case, reply.err)
        assert reply.code in (2, 3, 4), case
        assert reply.err.rstrip("\n").isprintable(), case
    # If this fails, read the changed messages before you write the table again; see messages.py.
    assert package_lines(as_table(replies)) == package_lines(TABLE.read_text("utf-8"))


def package_lines(table: str) -> list[str]:
    """Return the lines of a table without those worded by libraries."""
    return [line for line in table.splitlines() if not any(word in line for word in OF_LIBRARIES)]
