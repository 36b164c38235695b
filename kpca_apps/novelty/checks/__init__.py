"""Checks of single cells, and of columns whose distribution differs from the training table's."""
