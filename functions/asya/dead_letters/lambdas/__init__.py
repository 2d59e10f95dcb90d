"""The function that reports dead letters."""
