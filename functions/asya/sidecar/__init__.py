"""The sidecar of an actor: checks an envelope, calls the handler, routes the outcome and retries failures.

The entry point of a light actor's function is in `lambdas/wiring.py`.
"""
