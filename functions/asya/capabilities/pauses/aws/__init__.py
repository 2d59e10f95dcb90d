"""Paused envelopes in S3 and notices on EventBridge."""
