"""Self-contained pages: markup, style and script in one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from kpca_apps.report.text import Verbatim, count, cut, number, percent, plural, writable

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

    from kpca_apps.report.drawing import Drawing

MAX_SENTENCE = 400  # maximum number of characters of a sentence
LONGEST_WORD = 20  # characters of a word that fits into a title on a phone
PART = ".kpca-screening"  # CSS class of a report inside another page
TEMPLATES = Path(__file__).with_name("templates")
# How Jupyter, VS Code, Colab and documentation sites mark a light or dark theme.
LIGHT = ':is([data-jp-theme-light="true"], .vscode-light, [data-theme="light"])'
DARK = (
    ':is([data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast, [theme="dark"], '
    '[data-theme="dark"])'
)


def make_page(template: str, *, parts: tuple[str, ...] = (), **context: Any) -> str:
    """Render a template as a page, with additional style sheets and scripts.

    The HTML can be written as UTF-8; the same context gives the same bytes.
    """
    script = "".join(_asset(name) for name in ("report.js", *parts) if name.endswith(".js"))
    style = "".join(_asset(name) for name in ("report.css", *parts) if name.endswith(".css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    filled = {"script": Markup(script), "script_hash": digest, "style": Markup(style), **context}
    return writable(_environment().get_template(template).render(filled))


def make_part(template: str, **context: Any) -> str:
    """Render a template without script, as a part of another page, such as a notebook.

    The style applies to this part only and follows the notebook's theme. The part has no ids, as
    other parts of the page may use the same ids.
    """
    html = _environment().get_template(template).render(style=Markup(_bound_style()), **context)
    # Texts of a table contain no quotes, as these are escaped.
    html = re.sub(r' (?:id|aria-labelledby)="[^"]*"', "", html)
    html = re.sub(r'viewBox="0 0 ([0-9]+) ([0-9]+)"', r'\g<0> width="\1" height="\2"', html)
    return writable(html)


@cache
def _bound_style() -> str:
    """Return the style of pages, limited to elements of class `PART`.

    The class is repeated, to take priority over a notebook's style of tables and lists.
    """
    style = _asset("report.css")
    light, dark = re.findall(r":root \{([^}]*)\}", style)[:2]
    inner = re.sub(r"(?m)^(\s*)(?::root|html|body) \{", r"\1& {", style)
    return f"""{3 * PART} {{
:not(svg, svg *) {{ all: revert; }}
{inner}
padding: 0.6rem 0.8rem; border-radius: 4px;
{LIGHT} & {{{light}}}
{DARK} & {{{dark}}}
}}
"""


def block(content: Any) -> Markup:
    """Format data for a script as JSON in which no text can close the script element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def setting_text(value: object) -> str:
    """Format a setting exactly, so that a user can repeat it."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cut(value, MAX_SENTENCE) if isinstance(value, str) else cut(repr(value), MAX_SENTENCE)


class _CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """A folder of compiled templates; none are kept if it cannot be written."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        bytecode_cache=_CompiledTemplates(str(TEMPLATES / "__pycache__")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {form.__name__: form for form in (count, number, percent, plural, cut)}
    environment.filters |= {
        "sentence": _sentence,
        "svg": _svg,
        "data": lambda one: f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}",
    }
    return environment


def _sentence(parts: list[str]) -> Markup:
    """Join the parts of a sentence, with table texts in <bdi>, as they may run right to left.

    A short `Verbatim` part without spaces, such as a date, is not broken over lines.
    """
    whole = Markup('<bdi class="unbroken">{}</bdi>'), Markup("<bdi>{}</bdi>")
    return Markup("").join(
        whole[len(part) > LONGEST_WORD or " " in part].format(part)
        if isinstance(part, Verbatim)
        else escape(part)
        for part in parts
    )


def _svg(drawing: Drawing) -> Markup:
    from kpca_apps.report.drawing import to_svg

    return to_svg(drawing)


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")
