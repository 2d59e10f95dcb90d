"""Alarms, their topic, and dashboards."""
