"""Sends reports: progress in the background, required reports until they are taken."""
