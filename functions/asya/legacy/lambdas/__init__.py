"""The calls of older clients."""
