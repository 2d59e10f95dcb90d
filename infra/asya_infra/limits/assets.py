"""Checks the size of functions: their own code and their layers, unzipped."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from asya_infra.assembly import Template
from asya_infra.limits.aws_limits import CODE_AND_LAYERS
from asya_infra.limits.violation import Violation

_ADVICE = "Put fewer packages into `requirements.txt` of the handlers and large files into a bucket, or make the actor a heavy one."
_NAMED = 3


def check_assets(folder: Path, templates: Mapping[str, Template]) -> Iterator[Violation]:
    """Check the functions of all templates.

    Args:
        folder: the output folder of the CDK, which has the assets.
        templates: the templates by the name of the stack.
    """
    for stack, template in templates.items():
        resources = template.get("Resources", {})
        for resource in resources.values():
            if resource["Type"] != "AWS::Lambda::Function":
                continue
            layers = [layer["Ref"] for layer in resource["Properties"].get("Layers", []) if "Ref" in layer]
            parts = [resource, *(resources[name] for name in layers if name in resources)]
            size = sum(_size(folder, part) for part in parts)
            if size > CODE_AND_LAYERS.usable:
                path = str(resource.get("Metadata", {}).get("aws:cdk:path", stack)).removesuffix("/Resource")
                yield Violation(stack, path, size, CODE_AND_LAYERS, _advice(folder, resource))


def _advice(folder: Path, function: Template) -> str:
    """Return what to do, with the largest files of the function's own code."""
    name = function.get("Metadata", {}).get("aws:asset:path")
    largest = _files(folder / name)[:_NAMED] if name else []
    named = ", ".join(f"{path.relative_to(folder / name)} ({size / 1e6:,.0f} MB)" for size, path in largest)
    return f"{_ADVICE} Its largest files are {named}." if named else _ADVICE


def _files(folder: Path) -> list[tuple[int, Path]]:
    return sorted(((path.stat().st_size, path) for path in folder.rglob("*") if path.is_file()), reverse=True)


def _size(folder: Path, resource: Template) -> int:
    name = resource.get("Metadata", {}).get("aws:asset:path")
    return _folder_size(folder / name) if name else 0


@cache
def _folder_size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
