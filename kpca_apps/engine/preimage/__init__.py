"""Pre-images: from projections back to rows."""
