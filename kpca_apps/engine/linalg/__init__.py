"""Gram matrices, their leading eigenpairs, their partial factors."""
