"""Calls for operators about triggers and backfills (`protocol §16`, calls of operators)."""
