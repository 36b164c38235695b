"""The page of the papers."""
