"""The Lambda functions of wait actors and x-wait, and the release of what they hold."""
