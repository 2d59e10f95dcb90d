"""The manifest of a job run."""

from asya.protocol.job_runs import Manifest

MANIFEST = Manifest(
    run_id="asya.ns.heavy.0000000042",
    namespace="ns",
    actor="heavy",
    number=42,
    formed_at="2026-01-01T00:00:00.000000Z",
    job="jobs.work",
    shape="payload",
    timeout=60.0,
    time_limit=6,
    client_token="t" * 64,
    members=(),
)
"""A run without members: run 42 of `heavy`, six minutes long."""
