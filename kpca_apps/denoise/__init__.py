"""Kernel PCA denoising of images."""
