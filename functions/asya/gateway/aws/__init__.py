"""Idempotency keys, and the start of tasks."""
