"""Constructs of light, heavy and system actors, and of their queues."""
