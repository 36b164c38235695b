"""Kernel PCA of a group of similar patches, in readable Python and in compiled code."""
