"""Waits: holds envelopes until a time, and sends them on when it has come.

The entry points of wait actors and x-wait are in `lambdas/wiring.py`. The sweep of pauses sends what is due.
"""
