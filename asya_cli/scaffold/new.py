"""`asya new`: adds an actor or a tool to a mesh."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError, ExitCode
from asya_cli.options import DEFAULT_MESH, MeshFile
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from asya_cli.scaffold.additions import Addition
    from asya_infra.mesh_file import LoadedMesh

app = typer.Typer(
    no_args_is_help=True, help="Add an actor or a tool to a mesh: code, an entry in the mesh file, and a test."
)

_REQUIREMENTS = "requirements-dev.txt"


@app.command()
def actor(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the actor.", show_default=False)],
    *,
    mesh: MeshFile = DEFAULT_MESH,
) -> None:
    """Add a light actor: a Python function that runs in Lambda."""
    from asya_cli.scaffold import additions

    _add(mesh, lambda _: additions.actor(name))
    echo(f"Now write {name} and its test. To send it a payload: asya send FILE --actor {name} --wait", err=True)


@app.command("spark-actor")
def spark_actor(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the actor.", show_default=False)],
    *,
    mesh: MeshFile = DEFAULT_MESH,
) -> None:
    """Add a heavy actor: a PySpark function that runs as a job on EMR Serverless.

    The file requirements-dev.txt of `asya init` also gets the extra `spark`, which the test needs.
    """
    from asya_cli.scaffold import additions

    _add(mesh, lambda _: additions.spark_actor(name), spark=True)
    echo(f"Now write {name} and its test. To send it a payload: asya send FILE --actor {name} --wait", err=True)


@app.command()
def tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the tool.", show_default=False)],
    *,
    route: Annotated[
        list[str] | None,
        typer.Option("--route", metavar="ACTOR", help="An actor of the mesh; repeat it in order.", show_default=False),
    ] = None,
    mesh: MeshFile = DEFAULT_MESH,
) -> None:
    """Add a tool, which callers, models and agents start by its name.

    With --route the tool is a route through actors of the mesh. Otherwise an actor with its name is added, too.
    """
    from asya_cli.scaffold import additions

    def decide(loaded: LoadedMesh) -> Addition:
        if not route:
            return additions.tool(name)
        return additions.tool_of_route(name, tuple(route), loaded.mesh.actors.keys(), _model(loaded, route[0]))

    _add(mesh, decide, "To use actors of the mesh instead, add --route ACTOR." if not route else "")
    echo(f"Now describe {name} in {mesh}, and write its test. To call it: asya call {name} @FILE --wait", err=True)


def _add(mesh: Path, decide: Callable[[LoadedMesh], Addition], advice: str = "", *, spark: bool = False) -> None:
    """Load the mesh, and add what is decided, all or nothing.

    Raises:
        CommandError: The mesh file is missing, invalid or cannot be edited, a name is invalid or taken, or a file exists.
    """
    from asya_cli.scaffold.additions import UnknownActorError
    from asya_cli.scaffold.naming import InvalidNameError

    loaded = _load(mesh)
    try:
        addition = decide(loaded)
    except InvalidNameError as error:
        raise CommandError(str(error), "\n".join(filter(None, (error.hint, advice)))) from error
    except UnknownActorError as error:
        raise CommandError(str(error), "Add it first: asya new actor NAME") from error
    files = {_path(loaded, name): text for name, text in addition.files.items()}
    _check_free(loaded, addition, files)
    _write(loaded, addition, files, spark=spark)
    for path in files:
        echo(str(path))
    echo(str(mesh))


def _load(mesh: Path) -> LoadedMesh:
    from asya_infra.mesh_file import MeshFileError, load_mesh

    if not mesh.is_file():
        advice = "Go to its folder, name it with --mesh, or make a mesh: asya init NAME"
        raise CommandError(f"there is no mesh file {mesh}", advice, ExitCode.NOT_FOUND)
    try:
        return load_mesh(mesh)
    except MeshFileError as error:
        raise CommandError(f"{error}\n{mesh} has to be valid before something is added; nothing was changed") from error


def _path(loaded: LoadedMesh, name: str) -> Path:
    folder, _, rest = name.partition("/")
    folders = {"handlers": loaded.code_folder, "jobs": loaded.jobs_folder, "tests": loaded.path.parent / "tests"}
    return folders[folder] / rest


def _check_free(loaded: LoadedMesh, addition: Addition, files: dict[Path, str]) -> None:
    from asya.protocol.text import decode_text
    from asya_cli.scaffold.mesh_text import line_of

    text = decode_text(loaded.path.read_bytes())
    for entry in addition.entries:
        line = line_of(text, entry.section, entry.name)
        if line is not None:
            problem = f"{loaded.path}:{line}: there is already {entry.name!r} in {entry.section}; nothing was changed"
            raise CommandError(problem, "Choose another name.")
    for path in files:
        if path.exists() or path.is_symlink():
            raise CommandError(f"{path} exists already; nothing was changed", "Choose another name, or move the file.")


def _write(loaded: LoadedMesh, addition: Addition, files: dict[Path, str], *, spark: bool) -> None:
    from asya.protocol.text import decode_text
    from asya_cli.scaffold.files import draft_of, new_files
    from asya_cli.scaffold.mesh_text import NotEditableError, with_entry
    from asya_infra.mesh_file import MeshFileError, load_mesh

    mesh = loaded.path
    try:
        text = decode_text(mesh.read_bytes())
        for entry in addition.entries:
            text = with_entry(text, entry)
        with ExitStack() as changes:
            changes.enter_context(new_files(files))
            requirements = mesh.parent / _REQUIREMENTS
            if spark and requirements.is_file():
                changes.enter_context(draft_of(requirements, _with_spark(decode_text(requirements.read_bytes()))))
            draft = changes.enter_context(draft_of(mesh, text))
            load_mesh(draft)
    except NotEditableError:
        entries = "\n".join(f"{entry.section}:\n{entry.text()}" for entry in addition.entries)
        raise CommandError(
            f"{mesh}: no entry can be added to this text, such as a section in braces; nothing was changed",
            f"Write each entry of the section on a line of its own, and type the command again; or write it yourself:\n{entries}",
        ) from None
    except MeshFileError as error:
        problem = str(error).replace(draft.name, mesh.name)
        raise CommandError(f"{problem}\nthe mesh would not be valid; nothing was changed") from error
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}; nothing was changed") from error


def _with_spark(requirements: str) -> str:
    return requirements.replace("asya-mesh[test]", "asya-mesh[test,spark]")


def _model(loaded: LoadedMesh, actor: str) -> str | None:
    """Return the type of the payloads of a light actor, as the mesh file names it."""
    from asya_cli.scaffold.additions import payload_model

    section = loaded.mesh.actors.get(actor)
    module, _, function = (section.handler if section and section.handler else "").rpartition(".")
    source = loaded.code_folder / f"{module.replace('.', '/')}.py"
    return payload_model(source.read_bytes(), module, function) if source.is_file() else None
