"""The edges: queues, objects, tables, reports, job runs, telemetry and settings."""
