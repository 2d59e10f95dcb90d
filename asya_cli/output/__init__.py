"""Writes what the command prints, with visible control characters."""
