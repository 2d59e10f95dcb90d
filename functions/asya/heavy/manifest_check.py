"""Checks that a manifest fits its run: the completion sends whatever envelopes it names (`protocol §10`)."""

from asya.protocol.job_runs import Manifest, pending_prefix


def manifest_problem(manifest: Manifest, actor: str, number: int) -> str | None:
    """The first thing in a manifest that does not fit the run; None if all fits.

    Args:
        actor, number: of the run, by which the manifest was found.
    """
    if (manifest.actor, manifest.number) != (actor, number):
        return f"it is that of run {manifest.number} of {manifest.actor!r}"
    folder = pending_prefix(actor)
    for member in manifest.members:
        key = member.envelope_key
        if key is not None and (not key.startswith(folder) or ".." in key.split("/")):
            return f"the envelope {key!r} of member {member.id!r} is outside of {folder}"
    return None
