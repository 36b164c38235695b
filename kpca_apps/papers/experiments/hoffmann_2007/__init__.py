"""Hoffmann (2007), Kernel PCA for novelty detection."""
