"""What ran in a mesh since a time: ends, failures, durations, and the cost of job runs."""
