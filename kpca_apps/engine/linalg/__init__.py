"""Gram matrices, their leading eigenpairs, and partial factors."""
