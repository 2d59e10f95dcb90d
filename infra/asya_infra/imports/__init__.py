"""Imports the handlers of a mesh from what would be deployed, as functions do, and tells which cannot be imported."""
