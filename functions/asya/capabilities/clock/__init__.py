"""The clock of a mesh: one function for what all capabilities do every minute or few."""
