"""A task's progress, actor by actor, as it is seen from outside."""
