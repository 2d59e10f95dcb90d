"""The files of a template, with the names of the author in place of those in the template."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from asya_cli.scaffold.naming import CodeNames

_ROOT = files("asya_cli.scaffold")
_README = "README.md"
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
    texts = {**common, **own, _README: own[_README] + common[_README]}
    replacements = {"my-mesh": name, "==0.0.0": f"=={version}"}
    return {path: _replaced(text, replacements) for path, text in sorted(texts.items())}


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
