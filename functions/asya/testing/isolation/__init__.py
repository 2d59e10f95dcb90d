"""Keeps the work of a mesh apart from the rest of its process: its thread, its loops, its clock, and AWS."""
