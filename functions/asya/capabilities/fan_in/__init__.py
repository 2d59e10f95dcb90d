"""Fan-in: collects the slices of a set and merges their results into one envelope.

The entry points, a fan-in actor and the sweep, are in `lambdas/wiring.py`.
"""
