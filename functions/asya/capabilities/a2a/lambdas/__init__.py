"""The functions that make and deliver push notifications."""
