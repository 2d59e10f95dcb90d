"""Pause and resume: stores envelopes that wait for an answer, and routes them on with the answer.

The entry points of pause actors, x-resume and the sweep are in `lambdas/wiring.py`.
"""
