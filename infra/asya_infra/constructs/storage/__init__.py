"""Constructs of the bucket and the tables of a mesh."""
