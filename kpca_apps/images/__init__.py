"""Read and write image files with their metadata."""
