"""Compares templates with recorded ones: logical ids, types and properties of deployed resources stay.

To accept an intended change: `python -m tests.infra.recorded_templates`. With a folder as its argument the command writes the
normalized templates there instead, in full, so that those of two commits can be compared with `diff`.
"""

import argparse
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.infra.conftest import synthesize
from tests.infra.hundred_actors import write_mesh
from tests.infra.private_mesh import write_private_mesh

Templates = dict[str, dict[str, dict[str, Any]]]
"""Of each stack, by logical id: a resource, or an output or condition (`Outputs.GatewayUrl`)."""

RECORDED = Path(__file__).parent / "recorded"
ACCEPT = "If the change is intended: python -m tests.infra.recorded_templates"

_EXAMPLE_CONTEXT = {"emr_application_id": "00abc123"}  # as the fixture `example` has it
_IGNORED = ("Metadata",)
_SECTIONS = ("Outputs", "Conditions", "Mappings")
_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")
_VERSION_HASH = re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}")
_OWN_HANDLER = re.compile(r"asya(\.\w+)+")


def hundred(folder: Path) -> Templates:
    """The normalized templates of the mesh of a hundred actors, with the settings that a deployment has."""
    synthesize(folder / "out", mesh=str(write_mesh(folder)))
    return normalized(folder / "out")


def normalized(folder: Path) -> Templates:
    """The templates in a folder, without what depends on the content of code."""
    return {
        file.name.removesuffix(".template.json"): dict(_entries(json.loads(file.read_text())))
        for file in sorted(folder.glob("*.template.json"))
    }


def digests(templates: Templates) -> Templates:
    """The type of each entry, and a digest of all of it."""
    return {
        stack: {name: {"Type": entry["Type"], "digest": _digest(entry)} for name, entry in entries.items()}
        for stack, entries in templates.items()
    }


def differences(recorded: Templates, current: Templates) -> list[str]:
    """Return one or more lines for each difference. Both arguments are either in full or digests."""
    lines: list[str] = []
    for stack in sorted({*recorded, *current}):
        before, after = recorded.get(stack, {}), current.get(stack, {})
        for name in sorted({*before, *after}):
            changes = _difference(before.get(name), after.get(name))
            lines += [f"{stack}: {name}: {line}" for line in changes]
    return lines


def read(name: str) -> Templates:
    """Read recorded templates."""
    return dict(json.loads((RECORDED / f"{name}.json").read_text()))


def write(folder: Path, name: str, templates: Templates) -> None:
    """Write templates with one value per line, for short diffs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(templates, indent=1, sort_keys=True) + "\n")


def _entries(template: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, resource in template["Resources"].items():
        properties = {key: value for key, value in resource.items() if key not in _IGNORED}
        yield _without_hashes(name), _plain(properties)
    for section in _SECTIONS:
        for name, value in template.get(section, {}).items():
            yield f"{section}.{name}", {"Type": section, "Properties": _plain(value)}


def _plain(value: Any) -> Any:
    """Intrinsic functions as text, with `<…>` for what a deployment fills in; handlers and hashes of code left out."""
    if isinstance(value, dict):
        handler = value.get("Handler")
        if isinstance(handler, str) and _OWN_HANDLER.fullmatch(handler):
            value = {**value, "Handler": "<handler>"}
        items = {_without_hashes(key): _plain(item) for key, item in value.items()}
        if isinstance(items.get("Resource"), list):
            items["Resource"] = sorted(items["Resource"], key=str)  # the CDK sorts by name, hashes included
        return _text_of(*next(iter(items.items()))) or items if len(items) == 1 else items
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return _without_hashes(value) if isinstance(value, str) else value


def _text_of(function: str, argument: Any) -> str | None:
    """Return an intrinsic function as text; None for other values."""
    text = None
    if function == "Ref":
        text = f"<{argument}>"
    elif function == "Fn::GetAtt":
        text = f"<{'.'.join(argument)}>"
    elif function == "Fn::ImportValue" and isinstance(argument, str):
        text = f"<import {argument}>"
    elif function == "Fn::Sub" and isinstance(argument, str):
        text = re.sub(r"\$\{([^}!]+)\}", r"<\1>", argument)
    elif function == "Fn::Join" and all(isinstance(part, str) for part in argument[1]):
        text = argument[0].join(argument[1])
    return text


def _without_hashes(text: str) -> str:
    return _VERSION_HASH.sub(r"\1<hash>", _CONTENT_HASH.sub("<hash>", text))


def _digest(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]


def _difference(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    if before is None:
        return [f"{(after or {})['Type']}: added"]
    if after is None:
        return [f"{before['Type']}: missing"]
    if before["Type"] != after["Type"]:
        return [f"type: {before['Type']} → {after['Type']}"]
    return [
        f"{before['Type']}: {path}: {old} → {new}" if path != "digest" else f"{before['Type']}: properties"
        for path, old, new in _changes("", before, after)
    ]


def _changes(path: str, before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    """The innermost values that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _changes(f"{path}.{key}".lstrip("."), before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from _changes(f"{path}[{index}]", *pair)
    elif before != after:
        yield path, json.dumps(before), json.dumps(after)


def main() -> None:
    """Record the current templates, or write them in full to a folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.infra.recorded_templates")
    parser.add_argument("folder", nargs="?", type=Path, help="write the templates in full here, and record nothing")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as scratch:
        synthesize(Path(scratch) / "example", **_EXAMPLE_CONTEXT)
        example, wide = normalized(Path(scratch) / "example"), hundred(Path(scratch) / "hundred")
        synthesize(Path(scratch) / "private", mesh=str(write_private_mesh(Path(scratch))))
        private = normalized(Path(scratch) / "private")
    write(folder or RECORDED, "example", example)
    write(folder or RECORDED, "private", private if folder else digests(private))
    write(folder or RECORDED, "hundred", wide if folder else digests(wide))


if __name__ == "__main__":
    main()
