"""The cancellation of a task with its descendants and job runs, and what it is built of."""
