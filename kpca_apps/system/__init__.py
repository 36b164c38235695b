"""Infrastructure: workers, files, object stores, memory limits, signals."""
