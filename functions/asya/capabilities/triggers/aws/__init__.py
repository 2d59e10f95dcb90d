"""The items of schedules in the tasks table, messages to the queue x-triggers, and letters to its dead-letter queue."""
