"""Runs one handler or job on this machine, with what it finds on AWS: its own packages, and nothing of this project."""
