"""The fan-in function and its sweep."""
