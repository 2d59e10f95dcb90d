"""Loads mesh files that tests write into the working folder, which the fixture `folder` sets."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent, indent

from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh
from asya_infra.mesh_file.actor_model import ActorSection

JOBS = "def crunch(spark, payload): return payload\ndef crunch_all(spark, envelopes): return envelopes\n"


def write_code(folder: Path) -> None:
    """Write the handler `shop.one` and the jobs `heavy.crunch` and `heavy.crunch_all` into a folder."""
    (folder / "functions/handlers").mkdir(parents=True)
    (folder / "functions/handlers/shop.py").write_text("def one(payload): return payload\n")
    (folder / "spark_jobs").mkdir()
    (folder / "spark_jobs/heavy.py").write_text(JOBS)


def load(text: str, stage: str = "") -> LoadedMesh:
    """Write a mesh file and load it; its first line is the first one with text.

    Raises:
        MeshFileError: the file has problems.
    """
    Path("mesh.yaml").write_text(dedent(text).lstrip("\n"))
    return load_mesh(Path("mesh.yaml"), stage)


def one_of(values: Iterable[str]) -> str:
    """Return the values as messages list them."""
    *others, last = map(repr, sorted(values))
    return f"{', '.join(others)} or {last}"


def with_actor(keys: str) -> str:
    """Return a mesh file of one actor, `a`, with these lines, the first of them in line 4."""
    return "namespace: shop\nactors:\n  a:\n" + indent(dedent(keys).strip("\n"), "    ") + "\n"


def load_actor(keys: str) -> ActorSection:
    """Load a mesh file of one actor with these lines; return the actor.

    Raises:
        MeshFileError: the file has problems.
    """
    return load(with_actor(keys)).mesh.actors["a"]


def problems_of(text: str, stage: str = "") -> list[str]:
    """Return the problems of a mesh file, each in one line without the file name."""
    try:
        load(text, stage)
    except MeshFileError as error:
        return [line.removeprefix("mesh.yaml:") for line in str(error).splitlines()]
    return []


def mesh_problems(more: str) -> list[str]:
    """Return the problems of a mesh with one actor and these keys from line 4 on."""
    return problems_of(f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\n{more}\n")


def light_actor_problems(keys: str, name: str = "a") -> list[str]:
    """Return the problems of a light actor with these keys in line 4."""
    return problems_of(f"namespace: shop\nactors:\n  {name}:\n    {{handler: shop.one, {keys}}}\n")


def heavy_actor_problems(keys: str, spark: str = "", more: str = "") -> list[str]:
    """Return the problems of a heavy actor with these keys in line 4, and of the keys of the mesh from line 5 on."""
    actor = f"  a:\n    {{spark: {{job: heavy.crunch, {spark}}}, {keys}}}"
    return problems_of(f"namespace: shop\nactors:\n{actor}\n{more}")
