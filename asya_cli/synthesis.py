"""Synthesizes the stacks of a mesh, as `cdk synth` does. An unchanged mesh is not synthesized again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya_infra.assemblies import Synthesized
    from asya_infra.mesh_file import LoadedMesh

_OWN_OPTIONS = {"mesh": "--mesh", "stage": "--stage"}


def synthesize(loaded: LoadedMesh, stage: str, pairs: Sequence[str] = ()) -> Synthesized:
    """Return the templates and assets of a mesh, and the quotas that it exceeds.

    Args:
        loaded: the mesh.
        stage: its stage.
        pairs: further options of the stacks, such as `relist=1`.

    Raises:
        CommandError: An option is wrong, AWS would refuse the mesh, or the CDK cannot be installed.
    """
    from asya_infra.assemblies import Synthesis, SynthesisError
    from asya_infra.options import OptionError
    from asya_infra.product.environments import EnvironmentsError

    context = {**_context(pairs), **({"stage": stage} if stage else {})}
    try:
        return Synthesis(loaded, context).run()
    except EnvironmentsError as error:
        raise CommandError("the CDK is missing, which makes the templates", str(error)) from error
    except (OptionError, SynthesisError) as error:
        raise CommandError(f"cannot synthesize {loaded.path}", str(error)) from error


def _context(pairs: Sequence[str]) -> dict[str, str]:
    context = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key.startswith("aws:"):
            raise CommandError(f"the option of the stacks {pair!r} is none", "Write KEY=VALUE, such as relist=1.")
        if key in _OWN_OPTIONS:
            raise CommandError(f"{pair!r} is no option of the stacks", f"Give {_OWN_OPTIONS[key]} {value}.")
        context[key] = value
    return context
