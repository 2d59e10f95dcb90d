"""The calls of the HTTP API, a module per group."""
