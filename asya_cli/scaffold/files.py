"""The files of a template, with the names of the author in place of its own. Writes all or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from asya_infra.product.places import FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from asya_cli.scaffold.naming import CodeNames

_ROOT = files("asya_cli.scaffold")
_README = "README.md"
_BUILD = "requirements-build.txt"
_IGNORED = frozenset({"__pycache__", ".DS_Store"})


def project_files(template: str, name: str, version: str) -> dict[str, str]:
    """Return the files of a new project by their relative paths.

    A template is a project, and replaces files of the common part. Its README goes before that of the common part.

    Args:
        template: the name of the template, such as `agent-tools`.
        name: the name of the mesh.
        version: the version of `asya-mesh` that the project requires.
    """
    folder = _ROOT / "templates"
    common, own = _read(folder / "common"), _read(folder / template.replace("-", "_"))
    texts = {**common, **own, _README: own[_README] + common[_README], _BUILD: _build_requirements()}
    replacements = {"my-mesh": name, "==0.0.0": f"=={version}"}
    return {path: _replaced(text, replacements) for path, text in sorted(texts.items())}


def _build_requirements() -> str:
    """Return what builds PySpark, pinned with hashes: the workflow lets the index add nothing to it."""
    return (FILES / "requirements" / "build.txt").read_text(encoding="utf-8")


def piece_files(piece: str, name: str, code: CodeNames) -> dict[str, str]:
    """Return the files of an actor or tool by their relative paths: code below `handlers` or `jobs`, tests below `tests`.

    Args:
        piece: `actor`, `spark_actor` or `tool`.
        name: its name.
        code: its names in Python.
    """
    replacements = {"my-actor": name, "my_actor": code.module, "MyActor": code.model}
    return {
        _replaced(path, replacements): _replaced(text, replacements)
        for path, text in _read(_ROOT / "pieces" / piece).items()
    }


def _read(folder: Traversable, prefix: str = "") -> dict[str, str]:
    return dict(_walk(folder, prefix))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for each in folder.iterdir():
        if each.name in _IGNORED:
            continue
        if each.is_dir():
            yield from _walk(each, f"{prefix}{each.name}/")
        else:
            yield f"{prefix}{each.name}", each.read_text(encoding="utf-8")


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    for before, after in replacements.items():
        text = text.replace(before, after)
    return text


def make_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with files. It appears complete, or not at all.

    Args:
        folder: the folder, which does not exist or is empty.
        files: the texts by relative path.

    Raises:
        OSError: The folder exists and is not empty, or cannot be made.
    """
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        draft.chmod(0o777 & ~_umask())  # mkdtemp makes it private
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def new_files(files: Mapping[Path, str]) -> Iterator[None]:
    """Write new files, and remove them again if the block raises.

    Raises:
        FileExistsError: A file exists already.
        OSError: A file cannot be written.
    """
    made: list[Path] = []
    try:
        for path, text in files.items():
            for folder in reversed([each for each in path.parents if not each.exists()]):
                folder.mkdir()
                made.append(folder)
            with path.open("x", encoding="utf-8", newline="") as file:
                made.append(path)
                file.write(text)
        yield
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


@contextmanager
def draft_of(path: Path, text: str) -> Iterator[Path]:
    """Write a text beside a file; the text replaces the file when the block ends, unless the block raises.

    Yields:
        The path of the draft.
    """
    target = path.resolve() if path.is_symlink() else path  # a link stays a link
    number, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=target.suffix, dir=target.parent)
    draft = target.parent / Path(name).name
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(target, draft)
        yield draft
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
