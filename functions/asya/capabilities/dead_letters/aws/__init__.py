"""Dead-letter queues, copies of dead letters, marks of reports, and the sources of replays."""
