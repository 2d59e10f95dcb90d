"""Legacy forms of envelopes, failed payloads and gateway calls (`protocol §14`)."""
