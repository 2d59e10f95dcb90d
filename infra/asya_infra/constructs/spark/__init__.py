"""Constructs for all heavy actors: the Spark application, job code, the job role, and the functions for runs."""
