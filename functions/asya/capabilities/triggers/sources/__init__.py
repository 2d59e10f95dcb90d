"""What S3 and EventBridge tell of: new objects, events, and the filters of notifications."""
