"""Reads the types of handlers and jobs, and holds them against each other along the routes of a mesh file."""
