"""Formulas as MathML, which browsers draw by themselves: no script, nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def write_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a sentence."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def write_display(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where the page is narrow."""
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the way formulas are written."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_display, None))
    return {"parallel_read_safe": True}
