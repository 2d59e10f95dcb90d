"""Turns errors of AWS into those of commands, and names the actor or tool that was meant."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import UnreachableError
from asya.protocol import names
from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from asya.client.connection import Connection


@contextmanager
def aws_errors(problem: str, advice: str = "") -> Iterator[None]:
    """Turn an error of AWS in the block into that of a command.

    Args:
        problem: What cannot be done.
        advice: What the user can do if AWS refuses the call.

    Raises:
        CommandError: AWS refused the call.
        UnreachableError: AWS did not answer.
    """
    try:
        yield
    except ClientError as error:
        raise CommandError(f"{problem}: {error}", advice) from error
    except BotoCoreError as error:
        raise UnreachableError(f"{problem}: {error}") from error


_DLQ = "-dlq"


def deployed_actors(connection: Connection) -> list[str]:
    """Return the actors and system functions of a mesh, by its queues.

    Raises:
        ClientError, BotoCoreError: SQS fails or denies access.
    """
    start = names.queue_name(connection.namespace, "")
    pages = connection.sqs().get_paginator("list_queues").paginate(QueueNamePrefix=start)
    urls = [url for page in pages for url in page.get("QueueUrls", [])]
    found = (url.rpartition("/")[2].removeprefix(start) for url in urls)
    return sorted(name for name in found if not name.endswith(_DLQ))


def check_actor(connection: Connection, actor: str) -> None:
    """Check that the mesh has an actor, as far as the caller may read the names of its queues.

    Raises:
        CommandError: The mesh has no such actor.
    """
    try:
        known = deployed_actors(connection)
    except (ClientError, BotoCoreError):
        return
    if known and actor not in known:
        raise unknown_actor(connection.namespace, actor, known)


def unknown_actor(namespace: str, actor: str, known: Iterable[str]) -> CommandError:
    """Return the error for an actor that a mesh does not have.

    Args:
        namespace: The mesh.
        actor: The name that was typed.
        known: The actors of the mesh, with those of the mesh itself.
    """
    own = [name for name in known if not names.is_reserved(name)]
    advice = f"Its actors are {', '.join(own)}." if own else "Check the name in the mesh file, and the namespace."
    return CommandError(
        f"the mesh {namespace!r} has no actor {actor!r}{meant(actor, known)}", advice, ExitCode.NOT_FOUND
    )


def unknown_tool(namespace: str, tool: str, mesh_file: Path) -> CommandError:
    """Return the error for a tool that a mesh does not have; the names are those of the mesh file, if it is there."""
    from asya_infra.mesh_file import MeshFileError, load_mesh

    try:
        known = list(load_mesh(mesh_file, None).mesh.tools)
    except MeshFileError:
        known = []
    advice = f"The tools of {mesh_file} are {', '.join(known)}." if known else "Name a tool of the deployed mesh file."
    return CommandError(f"the mesh {namespace!r} has no tool {tool!r}{meant(tool, known)}", advice, ExitCode.NOT_FOUND)


def meant(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'bill'?`, or an empty text if no known word is similar."""
    from asya_infra.mesh_file.source import did_you_mean

    return did_you_mean(word, known)
