"""``kpca denoise``: run, fit, noise."""
