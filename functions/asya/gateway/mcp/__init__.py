"""Tools for models: Model Context Protocol."""
