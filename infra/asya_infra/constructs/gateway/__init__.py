"""Constructs of the gateway: the HTTP APIs and their functions."""
