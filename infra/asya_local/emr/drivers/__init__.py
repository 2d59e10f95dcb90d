"""Spark driver processes, and the class archive that speeds up their start."""
