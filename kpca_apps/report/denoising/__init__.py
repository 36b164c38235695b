"""The report of denoising."""
