"""Reports: HTML, figures and JSON, computed only from a result object."""
