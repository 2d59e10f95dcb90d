"""Calls user code: a Spark session for each call, its time limit, its frames and its errors."""
