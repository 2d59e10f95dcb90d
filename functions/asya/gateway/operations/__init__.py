"""Calls about a mesh: lines, job runs, dead letters, numbers, failures (`protocol §13`, operations).

`x-operations` and `x-logs` have roles of their own, so the role of the API reads none of it. Their entry points are in
`wiring.py`.
"""
