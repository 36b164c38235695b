"""Denoise one image of a batch, whole or in pieces, on this machine or on another one."""
