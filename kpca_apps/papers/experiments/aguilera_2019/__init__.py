"""Aguilera and Antonanzas (2019), On kernel principal component analysis."""
