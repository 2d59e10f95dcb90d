"""Authenticates callers of the stand-in and evaluates their policies."""
