"""Reads from AWS what the pure modules of this slice describe."""
