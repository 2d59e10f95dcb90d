"""Callbacks: the open route that answers pauses, with a page for people (`protocol §11`)."""
