"""How surprising the cells of a row are, and one score from that and the kernel's error."""
