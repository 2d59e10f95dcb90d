"""Dead-letter queues, copies of dead letters, and what replays start from."""
