"""Dead letters: reports them, redrives them, and replays failed envelopes.

The entry point of the DLQ function is in `lambdas/wiring.py`; the gateway and the command `asya dlq` use the rest.
"""
