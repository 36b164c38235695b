"""Denoise batches of image files: find inputs, denoise, compare, preview and write results."""
