"""The HTML page that reports the experiments of the papers."""
