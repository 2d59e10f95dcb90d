"""Reads what a mesh has kept and logged, for people who look into it: payloads of hops, log lines, job runs, dead letters.

Nothing here changes a mesh. The gateway's calls for operators and the command use it.
"""
