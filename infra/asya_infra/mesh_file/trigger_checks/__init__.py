"""Checks of triggers: sources that AWS accepts, payloads that tools take, and tasks that would start themselves."""
