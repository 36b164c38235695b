"""Algorithms of historical or didactic interest; each says which of ours to prefer, and why."""
