"""Decisions: an envelope and an outcome in, deliveries and reports out. Pure."""
