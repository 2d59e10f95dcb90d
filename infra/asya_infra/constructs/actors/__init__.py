"""Light and heavy actors with their queues."""
