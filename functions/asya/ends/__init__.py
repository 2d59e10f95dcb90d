"""The crew: x-sink, x-sump, x-checkpoint and users' end actors.

Their entry points are in `lambdas/wiring.py`.
"""
