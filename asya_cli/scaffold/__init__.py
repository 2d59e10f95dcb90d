"""Begins a mesh: `asya init` makes a project from a template, and `asya new` adds actors and tools to it."""
