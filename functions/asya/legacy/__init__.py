"""Everything that exists only for older generations of envelopes and clients (`protocol §14`)."""
