"""Builds the layer, the code of functions and the code of jobs as plain folders, without Docker."""
