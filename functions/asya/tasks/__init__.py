"""Tasks: the record of an envelope, its hops, its timeline, and lists of tasks."""
