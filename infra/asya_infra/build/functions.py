"""The folders that functions are made from: the layer, and each kind of function's own code."""

import shutil
from pathlib import Path

from asya_infra.build.folder import build_once, copy_sources
from asya_infra.build.packages import Target, install
from asya_infra.repository import REPOSITORY

_LIBRARY = REPOSITORY / "functions" / "asya"
_REQUIREMENTS = REPOSITORY / "requirements"
_TABLE_FILE = "mesh.json"

START_SCRIPT = "run.sh"
_START_SERVER = """#!/bin/sh
PYTHONPATH="/opt/python:$LAMBDA_RUNTIME_DIR" exec python3 -m asya.gateway.streams.server
"""

# Of botocore's descriptions of all services, what the dispatcher speaks to (and what every client needs).
_SERVICES = {"dynamodb", "emr-serverless", "s3", "sqs", "sts"}


def build_layer(root: Path, target: Target) -> Path:
    """The library and its packages, laid out as a layer: `python/asya`, `python/msgspec` and so on."""
    requirements = _REQUIREMENTS / "layer.txt"

    def make(folder: Path) -> None:
        install(requirements, folder / "python", target, hashed=True)
        copy_sources(_LIBRARY, folder / "python" / "asya")

    return build_once(root, "layer", ["layer", target.key(), requirements, _LIBRARY], make)


def build_handlers(root: Path, target: Target, code: Path, table: bytes) -> Path:
    """The code of light actors: the user's folder with the packages it asks for, and the actor table."""
    requirements = code / "requirements.txt"

    def make(folder: Path) -> None:
        if requirements.is_file():
            install(requirements, folder, target)
        copy_sources(code, folder)
        (folder / _TABLE_FILE).write_bytes(table)

    return build_once(root, "handlers", ["handlers", target.key(), code, table], make)


def build_table(root: Path, table: bytes) -> Path:
    """The code of functions that have none of their own: the actor table."""
    return build_once(root, "table", ["table", table], lambda folder: _write(folder / _TABLE_FILE, table))


def build_gateway(root: Path, target: Target, table: bytes) -> Path:
    """The code of the gateway's API: a JSON Schema validator, and the actor table."""
    requirements = _REQUIREMENTS / "gateway.txt"

    def make(folder: Path) -> None:
        install(requirements, folder, target, hashed=True)
        _write(folder / _TABLE_FILE, table)

    return build_once(root, "gateway", ["gateway", target.key(), requirements, table], make)


def build_server(root: Path, table: bytes) -> Path:
    """The code of a function that serves HTTP itself: what starts the server, and the actor table."""

    def make(folder: Path) -> None:
        _write(folder / _TABLE_FILE, table)
        _write(folder / START_SCRIPT, _START_SERVER.encode())
        (folder / START_SCRIPT).chmod(0o755)

    return build_once(root, "server", ["server", table, _START_SERVER.encode()], make)


def build_dispatcher(root: Path, target: Target, table: bytes) -> Path:
    """The dispatcher's code: a boto3 that is newer than Lambda's, and the actor table."""
    requirements = _REQUIREMENTS / "dispatch.txt"

    def make(folder: Path) -> None:
        install(requirements, folder, target, hashed=True)
        for service in (folder / "botocore" / "data").iterdir():
            if service.is_dir() and service.name not in _SERVICES:
                shutil.rmtree(service)
        _write(folder / _TABLE_FILE, table)

    return build_once(root, "dispatcher", ["dispatcher", target.key(), requirements, table], make)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
