"""The functions that send push notifications."""
