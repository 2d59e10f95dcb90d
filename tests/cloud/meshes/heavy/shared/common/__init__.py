"""Shared by handlers and jobs, whose folders link to it."""
