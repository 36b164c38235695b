"""Reproductions of papers on kernel PCA: each published number beside ours."""
