"""The contract of a mesh in types: envelopes, routes, statuses, headers, ids, reports, tasks, job runs, the actor table.

Pure: the slice uses no clock, randomness, file, network or AWS. It has no entry points.
"""
