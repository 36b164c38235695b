"""The value expected in a cell, given the other cells of its row."""
