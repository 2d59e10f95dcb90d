"""Generated bad input at every edge of the mesh: each piece is answered as the protocol says, and nothing is lost."""
