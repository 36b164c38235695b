"""Batches of image files: what is read, denoised, compared, drawn and written."""
