"""One SQS batch at a time, and the process's clock, randomness and threads."""
