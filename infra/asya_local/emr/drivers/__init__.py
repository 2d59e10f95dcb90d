"""Spark driver processes."""
