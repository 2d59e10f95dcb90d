"""Fan-in: collects the slices of a set and merges them."""
