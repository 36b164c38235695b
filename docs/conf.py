"""Configuration of the documentation: ``sphinx-build -W --keep-going docs docs/_build``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
# Tutorials run the command that belongs to this Python, also where its environment is not active.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from kpca_apps import __version__

project = "kpca_apps"
author = "the kpca_apps developers"
copyright = "2026, the kpca_apps developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "mathml",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "schema_reference",
]
exclude_patterns = ["_build", "tutorials_source", "sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "py:obj"  # a name in backticks is a link where there is such a name
smartquotes = False  # two hyphens are two hyphens, as in options

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"kpca_apps {version}"
html_static_path = ["_static"]
html_css_files = ["kpca.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
html_sidebars = {"index": []}

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # of the words of a type, only names that are listed become links
numpydoc_xref_aliases = {
    "bool": ":class:`python:bool`",
    "callable": ":func:`python:callable`",
    "array": ":class:`array <numpy.ndarray>`",
    "array-like": ":func:`array-like <numpy.asarray>`",
    "iterable": ":class:`iterable <python:collections.abc.Iterable>`",
    "sequence": ":class:`sequence <python:collections.abc.Sequence>`",
    "Path": ":class:`~python:pathlib.Path`",
    "DataFrame": ":class:`~pandas.DataFrame`",
    **{
        name: f":class:`~kpca_apps.{name}`"
        for name in ("DenoiseInfo", "Execution", "Screening", "Workers", "KernelPCA")
    },
    **{
        name: f":class:`~kpca_apps.novelty.result.{name}`"
        for name in ("ColumnProfile", "OddCell", "RankedRow", "Reason")
    },
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# scikit-learn's own, of metadata.
OF_METADATA = "set_fit_request, set_predict_request, set_predict_proba_request"
autodoc_default_options = {"exclude-members": OF_METADATA}
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 70

# Names of other libraries that the pages link to. The inventories are kept here, as text, so that
# the site is built without a network.
LIBRARIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "polars": "https://docs.pola.rs/",
    "skimage": "https://scikit-image.org/docs/stable/",
}
intersphinx_mapping = {
    name: (address, str(Path(__file__).parent / "inventories" / f"{name}.inv"))
    for name, address in LIBRARIES.items()
}

sphinx_gallery_conf = {
    "examples_dirs": "tutorials_source",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_memory": False,
}


RESULTS = ("kpca_apps.novelty.result", "kpca_apps.api", "kpca_apps.denoise.estimate.info")


def hide_constructor(
    app: Sphinx, what: str, name: str, found: object, options: Any, *signature: str | None
) -> tuple[str, None] | None:
    """Show no arguments of result objects: they are not made by hand."""
    return ("", None) if what == "class" and found.__module__ in RESULTS else None


def setup(app: Sphinx) -> None:
    """Register what is done to signatures."""
    app.connect("autodoc-process-signature", hide_constructor)
