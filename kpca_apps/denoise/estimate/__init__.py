"""Estimate the noise of an image: its level, uncertainty, and growth with brightness."""
