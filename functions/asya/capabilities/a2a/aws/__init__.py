"""Storage of push configurations and delivery of push notifications."""
