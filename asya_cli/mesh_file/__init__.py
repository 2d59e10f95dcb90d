"""Commands about a mesh file alone: what is wrong with it, its keys, and a picture of it."""
