"""Messages of the mesh: deliveries, queues, claim checks, batches, and the settings every function reads."""
