"""Tasks: the record of each envelope, its hops, its timeline and lists of tasks."""
