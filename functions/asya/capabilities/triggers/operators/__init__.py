"""What operators do with triggers: the requests and answers of their calls, backfills, and slots before their time."""
