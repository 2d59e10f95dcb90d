"""Queues, the claim check, settings, telemetry and AWS clients."""
