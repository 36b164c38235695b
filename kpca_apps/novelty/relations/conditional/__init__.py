"""What a cell is expected to read given the others of its row."""
