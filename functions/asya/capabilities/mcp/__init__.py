"""Tools for models: Model Context Protocol. `routes.build_mcp` builds the routes of `POST /mcp`."""
