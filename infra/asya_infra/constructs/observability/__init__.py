"""The dashboard and the alarms."""
