"""The functions behind the HTTP API, and the sweep of deadlines."""
