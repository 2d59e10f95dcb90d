"""The Lambda functions of fan-in actors and of the sweep."""
