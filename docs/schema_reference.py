"""A directive that lists the kinds of JSON with their keys; their schemas are files of the site."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from kpca_apps.cli.schema import schemas

FOLDER = "schemas"  # of the site


class SchemaReference(SphinxDirective):
    """``.. schema-reference::`` lists every kind of JSON."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of all kinds."""
        content = StringList(list(reference()), source="kpca schema")
        parent = nodes.section()
        self.state.nested_parse(content, 0, parent, match_titles=True)
        return list(parent.children)


def reference() -> Iterator[str]:
    """Yield the lines of the reference as reStructuredText."""
    for kind, schema in schemas().items():
        yield from (f".. _schema-{kind}:", "", kind, "-" * len(kind), "")
        yield from (schema["description"], "")
        yield from (f"Schema: `{kind}.json <../{FOLDER}/{kind}.json>`__", "")
        yield from _keys(schema)
        for name, inner in schema["$defs"].items():
            if "properties" in inner:
                yield from (f"**{name.strip('_')}**. {_escaped(inner.get('description', ''))}", "")
                yield from _keys(inner)


def _keys(schema: dict[str, Any]) -> Iterator[str]:
    for key, one in schema["properties"].items():
        yield from (f"- ``{key}``: {_escaped(type_of(one))}", "")


def type_of(schema: dict[str, Any]) -> str:
    """Write a schema in a few words."""
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2].strip("_"))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(type_of, schema["anyOf"])))
    if "prefixItems" in schema:
        return f"[{', '.join(map(type_of, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"list of {type_of(schema['items'])}"
    values = schema.get("additionalProperties")
    return f"object of {type_of(values)}" if values else str(schema.get("type", "anything"))


def _escaped(text: str) -> str:
    for sign in "\\*|`_":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def write_schemas(app: Sphinx, error: Exception | None) -> None:
    """Write each schema beside the pages."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir, FOLDER)
        folder.mkdir(exist_ok=True)
        for kind, schema in schemas().items():
            text = json.dumps(schema, indent=2, ensure_ascii=False)
            (folder / f"{kind}.json").write_text(f"{text}\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and what writes the files."""
    app.add_directive("schema-reference", SchemaReference)
    app.connect("build-finished", write_schemas)
    return {"parallel_read_safe": True}
