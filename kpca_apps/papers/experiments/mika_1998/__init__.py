"""Mika et al. (1998), Kernel PCA and de-noising in feature spaces."""
