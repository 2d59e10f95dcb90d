"""Starts tasks: sends envelopes, and calls tools."""
