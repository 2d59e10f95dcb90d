"""Calls for operators: what functions and job runs have logged, job runs, dead letters, numbers (`protocol §13`, operations).

`x-operations` and `x-logs` have roles of their own, so the role of the API reads none of it. Their entry points are in
`wiring.py`.
"""
