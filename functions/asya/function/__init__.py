"""Messages and queues: deliveries, batches, the claim check, and the settings and telemetry of all functions.

It has no entry points; the functions of other slices use it.
"""
