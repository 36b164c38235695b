"""Read and write image files: pixels through established libraries, metadata carried over."""
