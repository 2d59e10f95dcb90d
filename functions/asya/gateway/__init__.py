"""The gateway: submissions, tasks, tools, access."""
