"""Entry points of light actors, and what they consist of."""
