"""Resident runs: drivers that wait for further batches of envelopes instead of ending (`protocol §10.resident`)."""
