"""Calling user code: loading, frames, the ABI, signatures, time limits. Knows no AWS."""
