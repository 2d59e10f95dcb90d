"""What a mesh can do besides hops and their ends: a folder for each capability."""
