"""Held envelopes in S3."""
