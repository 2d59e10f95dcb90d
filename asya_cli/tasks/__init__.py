"""Shows tasks, and changes them: one by its id, or many by their errors."""
