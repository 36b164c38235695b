"""Files of microscopes, telescopes and medical scanners; their libraries are extras."""
