"""The start of a task: its first envelope, its record, once per idempotency key.

`aws/task_starter.py` starts tasks; the calls of the gateway and the triggers use it.
"""
