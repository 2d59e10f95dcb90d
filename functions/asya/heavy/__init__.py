"""Heavy actors: pending envelopes, job runs on EMR Serverless, and the routing of their results.

`lambdas/wiring.py` has the entry points: `enqueue`, `dispatch`, `complete` and `reconcile`.
"""
