"""Push notification targets and their delivery."""
