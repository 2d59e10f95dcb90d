"""The stand-in for Amazon EMR Serverless: its HTTP API, states, limits and events, with PySpark on this machine.

Entry point: `python -m asya_local.emr`.
"""
