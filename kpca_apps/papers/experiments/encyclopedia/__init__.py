"""The encyclopedia's article Kernel PCA."""
