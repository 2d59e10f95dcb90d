"""API Gateway's events to requests, answers to JSON; who calls."""
