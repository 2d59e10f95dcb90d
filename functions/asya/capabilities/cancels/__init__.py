"""Cancels tasks, for the gateway's calls and for triggers that cancel the previous task (`protocol §13.cancel`)."""
