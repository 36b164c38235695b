"""A plugin for napari (extra "napari"): one widget, which denoises the image on the screen."""
