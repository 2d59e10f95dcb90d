"""The HTTP API of EMR Serverless."""
