"""What the words mean: envelope, route, status, headers, ids, progress, errors. Pure: no clock, no randomness, no AWS."""
