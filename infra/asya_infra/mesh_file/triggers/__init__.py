"""The triggers of a mesh file: their keys, and what functions read of them."""
