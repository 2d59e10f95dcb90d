"""Follows the progress of a task, actor by actor, by polling the gateway."""
