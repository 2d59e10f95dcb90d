"""Heavy actors: envelopes become pending, runs are formed, started and completed."""
