"""Processing of SQS batches, and the environment of a process: clock, randomness and threads."""
