"""Configuration of the documentation: ``sphinx-build -W --keep-going docs docs/_build``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

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
    "mathml",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_reference",
]
exclude_patterns = ["_build", "tutorials_source", "sg_execution_times.rst"]
templates_path = ["_templates"]
smartquotes = False  # two hyphens are two hyphens, as in options

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "kpca_apps"
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
autodoc_typehints = "none"

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
