"""``kpca schema``: the JSON schemas of all JSON that the commands write."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from kpca_apps.cli.console import Console, column_lines
from kpca_apps.errors import ConfigError
from kpca_apps.names import in_prose, one_line, suggest

RULES = "rules"
_OF_RULES = (
    "Rules between the columns of a table: kpca novelty rules --format json. Its version is "
    "format_version."
)


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by the names of their kinds."""
    from kpca_apps.cli.denoise import documents as denoise
    from kpca_apps.cli.novelty import documents as novelty
    from kpca_apps.cli.papers.run import EXPERIMENTS
    from kpca_apps.cli.results import RUN
    from kpca_apps.novelty.relations.rule_file import rules_schema
    from kpca_apps.report.json_schema import DIALECT, schema_of
    from kpca_apps.report.result_json import DOCUMENTS

    known = (*DOCUMENTS.values(), *novelty.DOCUMENTS, *denoise.DOCUMENTS, EXPERIMENTS, RUN)
    made = {document.name: schema_of(document) for document in known}
    made[RULES] = rules_schema() | {"$schema": DIALECT, "title": RULES, "description": _OF_RULES}
    return dict(sorted(made.items()))


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Name of a schema. Default: list them.")
    ] = None,
) -> None:
    """Print the JSON schema of what other commands write as JSON.

    A document names its schema in $schema, such as urn:kpca-apps:schema:novelty-screening:1 for the
    kind novelty-screening. Keys that a schema does not name are refused.
    """
    console, found = Console(), schemas()
    if kind is None:
        console.data_lines(
            column_lines([(name, one["description"]) for name, one in found.items()])
        )
    elif kind in found:
        console.data(json.dumps(found[kind], indent=2, ensure_ascii=False))
    else:
        meant = suggest(kind, found) or f" Schemas: {in_prose([*found])}."
        raise ConfigError(f'there is no JSON schema "{one_line(kind)}".{meant}')
