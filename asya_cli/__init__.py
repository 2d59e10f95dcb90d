"""The `asya` command: runs a local cloud and the demo, and operates a mesh. `main` is the entry point."""
