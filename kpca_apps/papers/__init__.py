"""Reproductions of papers on kernel PCA: each published number next to ours."""
