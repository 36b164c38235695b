"""Kernel PCA of a group of similar points: fit, cut and pre-image, readable and compiled."""
