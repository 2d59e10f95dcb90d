"""The function x-triggers, the sweep of slots, and what they are built of."""
