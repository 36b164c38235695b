"""Local files: atomic results, temporary files, model files."""
