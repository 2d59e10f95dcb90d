"""Systems and people without an account, as they start and answer tasks of a mesh in memory."""
