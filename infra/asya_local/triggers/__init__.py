"""What sends to the queue of triggers, on a cloud of this machine: buckets of others, buses, notifications and rules."""
