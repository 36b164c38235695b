"""Files of cameras, scanners and the web."""
