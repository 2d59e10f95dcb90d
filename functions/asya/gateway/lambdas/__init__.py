"""The functions behind the HTTP API, and the deadline sweep; `wiring.py` has the Lambda handlers."""
