"""The Lambda functions of pause actors, x-resume and the sweep."""
