"""`asya demo`: the flight-delay pipeline, end to end, on a local cloud of its own."""
