"""From projections back to rows."""
