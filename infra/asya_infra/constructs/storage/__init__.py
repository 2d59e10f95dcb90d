"""The bucket and the tables of a mesh."""
