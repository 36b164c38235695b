"""Kernel PCA: kernels, exact and Nystrom fits, projections, reconstruction errors."""
