"""The sidecar of every actor, light or heavy: checks envelopes, routes outcomes and retries failures.

The entry point of a light actor's function is in `lambdas/wiring.py`.
"""
