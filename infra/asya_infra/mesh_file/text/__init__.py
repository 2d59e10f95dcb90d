"""Gives the keys of the mesh file that take text what is written in the file."""
