"""Image files in and out: pixels by kept libraries, metadata carried over."""
