"""The claim check, the outbox, settings, telemetry and AWS clients. It has no entry points."""
