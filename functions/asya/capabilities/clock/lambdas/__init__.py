"""The function of the clock."""
