"""Mirrors the part of S3 that a job run sees into a folder."""
