"""Kernel PCA at work: novelty detection in tables, on one shared engine."""

__version__ = "0.1.0"
