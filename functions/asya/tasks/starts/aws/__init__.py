"""The items of idempotency keys in the tasks table, and the writes and the send of a start."""
