"""Plugin for napari (extra "napari"): a widget that denoises the displayed image."""
