"""Checks that only actors with a handler have secrets, and that no variable has two values."""

from collections.abc import Iterator

from asya_infra.mesh_file.checks.context import Context, Finding


def check(context: Context) -> Iterator[Finding]:
    """Check the secrets of all actors."""
    for name, actor in context.mesh.actors.items():
        place = ("actors", name, "secrets")
        if actor.secrets and actor.spark is not None:
            yield (
                place,
                "a heavy actor cannot have secrets; grant a secret in access ({secret: NAME, read: true}) and read it in the job",
            )
        elif actor.secrets and actor.handler is None:
            yield place, "needs a handler, because the values are for its code"
        for variable in sorted(actor.secrets.keys() & actor.env.keys()):
            yield (*place, variable), "is in env too; keep one of them"
