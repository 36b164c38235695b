from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from kpca_apps.cli.main import app


def each_command() -> Iterator[tuple[str, Any]]:
    """Yield each command with its words, without ``kpca``."""
    groups: Any = get_command(app)
    for group, member in groups.commands.items():
        for name, command in getattr(member, "commands", {"": member}).items():
            yield f"{group} {name}".strip(), command
