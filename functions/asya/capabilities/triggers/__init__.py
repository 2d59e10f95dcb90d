"""Triggers: tasks that start by a schedule, a new object, an event or a webhook (`protocol §16`).

`lambdas/triggers.py` turns the messages of the queue `x-triggers` into starts; `lambdas/slot_sweep.py` sends the slots that
are due there. `slots.py` computes slots, `occurrences.py` is what each source gives.
"""
