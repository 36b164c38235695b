"""Files of microscopes, telescopes and scanners of bodies; their libraries are extras."""
