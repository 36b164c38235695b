"""Reproductions of the papers on kernel PCA, with the papers' numbers beside ours."""
