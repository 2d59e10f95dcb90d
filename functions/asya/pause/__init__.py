"""Pause and resume: envelopes that wait for an answer."""
