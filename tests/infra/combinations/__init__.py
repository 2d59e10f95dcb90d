"""Meshes with all options of the mesh file, in all pairs, and what AWS would say of each and of each change."""
