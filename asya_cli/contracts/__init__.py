"""`asya contracts`: which changes of types break envelopes in flight or callers."""
