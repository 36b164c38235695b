"""Examine the images of a batch: noise, comparisons, previews."""
