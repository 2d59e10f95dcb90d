"""Stamps envelopes, and counts the stamps."""
