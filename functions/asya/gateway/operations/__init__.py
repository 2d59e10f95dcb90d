"""Calls about a mesh: lines, job runs, dead letters, numbers, failures (`protocol §13`, operations).

`x-operations` has a role of its own, so the role of the API reads none of it. In a mesh of many actors `x-logs` reads the lines.
Their entry points are in `wiring.py`.
"""
