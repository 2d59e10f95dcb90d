"""The constructs that stacks are composed of."""
