"""What all heavy actors of a mesh share: the Spark application, its jobs' code and role, and what looks after runs."""
