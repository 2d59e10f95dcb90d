"""Runs user code: loading, handler modes, the ABI, frames, fan-out and time limits. The slice needs no AWS.

It has no entry points; the sidecars call it.
"""
