"""The gateway: the HTTP API in front of the tasks.

`lambdas/wiring.py` has the Lambda handlers; `routes`, `mcp`, `a2a` and `streams` have the calls.
"""
