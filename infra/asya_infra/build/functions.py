"""Builds the layer and the code of each kind of function."""

import shutil
from collections.abc import Callable
from pathlib import Path

from asya_infra.build.folder import build_once, copy_sources, link
from asya_infra.build.library import copy_library, library_inputs
from asya_infra.build.packages import Target, build_folder_packages, install, packages_key
from asya_infra.product.places import FILES

_REQUIREMENTS = FILES / "requirements"
_TABLE_FILE = "mesh.json"

START_SCRIPT = "run.sh"
_START_SERVER = """#!/bin/sh
PYTHONPATH="/opt/python:$LAMBDA_RUNTIME_DIR" exec python3 -m asya.gateway.streams.server
"""

# The service models of botocore that the dispatcher needs.
_SERVICES = {"dynamodb", "emr-serverless", "s3", "sqs", "sts"}


def build_layer(root: Path, target: Target, *, traces: bool = False) -> Path:
    """Build the layer with the library and its packages: `python/asya`, `python/msgspec` and so on.

    Args:
        root: the folder of all builds.
        target: the interpreter of the functions.
        traces: whether the functions record spans, which needs OpenTelemetry's SDK.
    """
    requirements = [_REQUIREMENTS / f"{name}.txt" for name in ("layer", *(("telemetry",) if traces else ()))]

    def build(folder: Path) -> None:
        for each in requirements:
            install(each, folder / "python", target, hashed=True)
        copy_library(folder / "python")

    packages = [part for each in requirements for part in packages_key(each, target, hashed=True)]
    return build_once(root, "layer", [*packages, *library_inputs()], build)


def build_runtime(root: Path, target: Target) -> Path:
    """Build the packages that Lambda's runtime for Python brings along, which are boto3 and what it needs."""
    requirements = _REQUIREMENTS / "dispatch.txt"
    key = packages_key(requirements, target, hashed=True)
    return build_once(root, "runtime", key, lambda folder: install(requirements, folder, target, hashed=True))


def build_handlers(root: Path, target: Target, code: Path, table: bytes | None, *, hashed: bool = False) -> Path:
    """Build the code of light actors: the user's folder, its required packages, and the actor table.

    Args:
        table: the actor table; None for code that is only imported.
        hashed: refuse required packages without hashes.
    """
    packages = build_folder_packages(root, code, target, hashed=hashed)

    def build(folder: Path) -> None:
        if packages is not None:
            _link_all(packages, folder)
        copy_sources(code, folder)
        if table is not None:
            (folder / _TABLE_FILE).write_bytes(table)

    key: list[str | bytes | Path] = [target.key() if packages is None else packages.name, code, table or b""]
    return build_once(root, "handlers", key, build)


def build_table(root: Path, table: bytes) -> Path:
    """Build the code of functions without user code: the actor table."""
    return build_once(root, "table", ["table", table], lambda folder: _write(folder / _TABLE_FILE, table))


def build_gateway(root: Path, target: Target, table: bytes) -> Path:
    """Build the code of the gateway's API function: a JSON Schema validator and the actor table."""
    validator = _build_validator(root, target)

    def build(folder: Path) -> None:
        _link_all(validator, folder)
        _write(folder / _TABLE_FILE, table)

    return build_once(root, "gateway", [validator.name, table], build)


def _build_validator(root: Path, target: Target) -> Path:
    """Build the packages of the gateway's API function, which all tables share."""
    requirements = _REQUIREMENTS / "gateway.txt"
    key = packages_key(requirements, target, hashed=True)
    return build_once(root, "validator", key, lambda folder: install(requirements, folder, target, hashed=True))


def build_server(root: Path, table: bytes) -> Path:
    """Build the code of a function with an HTTP server: the start script and the actor table."""

    def build(folder: Path) -> None:
        _write(folder / _TABLE_FILE, table)
        _write(folder / START_SCRIPT, _START_SERVER.encode())
        (folder / START_SCRIPT).chmod(0o755)

    return build_once(root, "server", ["server", table, _START_SERVER.encode()], build)


def build_dispatcher(root: Path, target: Target, table: bytes) -> Path:
    """Build the code of the dispatcher: a newer boto3 than Lambda's, and the actor table."""
    packages = build_runtime(root, target)
    models = packages / "botocore" / "data"

    def other_services(folder: str, names: list[str]) -> list[str]:
        return (
            [name for name in names if name not in _SERVICES and (models / name).is_dir()]
            if Path(folder) == models
            else []
        )

    def build(folder: Path) -> None:
        _link_all(packages, folder, other_services)
        _write(folder / _TABLE_FILE, table)

    return build_once(root, "dispatcher", [packages.name, table], build)


def _link_all(packages: Path, folder: Path, left_out: Callable[[str, list[str]], list[str]] | None = None) -> None:
    """Link installed packages into a folder. An installation takes a process and a second, and each change of a mesh a folder."""
    shutil.copytree(packages, folder, copy_function=link, symlinks=True, dirs_exist_ok=True, ignore=left_out)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
