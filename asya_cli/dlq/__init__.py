"""`asya dlq`: dead letters and refused reports, listed, shown and moved back."""
