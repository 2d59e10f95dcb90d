"""Tools for models: Model Context Protocol. `wiring.build_mcp` builds the routes of `POST /mcp`."""
