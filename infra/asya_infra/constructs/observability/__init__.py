"""Constructs of the dashboard and its alarms."""
