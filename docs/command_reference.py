"""A directive that writes the reference of the ``kpca`` commands from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from kpca_apps.cli.main import app


class CommandReference(SphinxDirective):
    """``.. command-reference::`` lists every command with its arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of all commands."""
        content = StringList(list(reference()), source="kpca --help")
        parent = nodes.section()
        self.state.nested_parse(content, 0, parent, match_titles=True)
        return list(parent.children)


def reference() -> Iterator[str]:
    """Yield the lines of the reference as reStructuredText."""
    groups: Any = get_command(app)
    for group, found in groups.commands.items():
        if not hasattr(found, "commands"):  # of no group
            yield from _command(f"kpca {group}", found, "-")
            continue
        yield from ("", f".. _kpca-{group}:", "", f"kpca {group}", "-" * 40, "", found.help, "")
        for name, command in found.commands.items():
            yield from _command(f"kpca {group} {name}", command, "~")


def _command(title: str, command: Any, underline: str) -> Iterator[str]:
    """Yield the section of one command."""
    label = title.replace(" ", "-")
    yield from ("", f".. _{label}:", "", title, underline * len(title), "")
    yield from (f".. program:: {title}", "")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([title, "[OPTIONS]", *(str(one.metavar) for one in arguments)])
    yield from (".. code-block:: text", "", f"   {usage}", "", *_escaped(command.help), "")
    for one in arguments:
        yield from (f"``{one.metavar}``", f"    {_escaped(one.help)[0]}", "")
    yield from _options(command)


def _options(command: Any) -> Iterator[str]:
    """Yield the options of a command, under the titles that its help has.

    As objects, so that each has an address, and the site's search finds it.
    """
    panels: dict[str, list[Any]] = {}
    for one in command.params:
        if one.param_type_name == "option":
            panels.setdefault(one.rich_help_panel or "Options", []).append(one)
    for panel, options in panels.items():
        yield from (f"**{panel}**", "")
        for one in options:
            metavar = "" if one.is_flag else f" {one.metavar}"
            flags = ", ".join(f"{flag}{metavar}" for flag in (*one.opts, *one.secondary_opts))
            default = "" if one.default in (None, False) else f" Default: ``{one.default}``."
            yield from (f".. option:: {flags}", "", f"    {_escaped(one.help)[0]}{default}", "")


def _escaped(text: str) -> list[str]:
    """Return help as lines of reStructuredText in which nothing is markup."""
    return [
        line.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|").replace("`", "\\`")
        for line in text.split("\n")
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
