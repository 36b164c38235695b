"""Reports: HTML, figures and JSON, each a pure function of a result object."""
