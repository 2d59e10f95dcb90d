"""A stand-in for Amazon EMR Serverless: its HTTP API, states, limits and events, over PySpark on this machine."""
