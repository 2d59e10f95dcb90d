"""The values of a mesh's secrets on the local cloud, from a file outside git."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asya.protocol.text import decode_text
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_local.account import aws_client
from asya_local.errors import LocalCloudError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from asya_infra.mesh_file.mesh_model import MeshFile
    from asya_local.account import AccessKey

FILE_NAME = "secrets.env"
"""The default file, in the state folder."""


def secret_values(mesh: MeshFile, file: Path) -> dict[str, str]:
    """Return the values of the secrets and parameters that the actors and webhooks name, by name.

    Raises:
        LocalCloudError: The file is invalid or lacks a value.
    """
    users: dict[str, list[str]] = {}
    for actor, section in mesh.actors.items():
        for reference in section.secrets.values():
            users.setdefault(reference, []).append(actor)
    for trigger, each in mesh.triggers.items():
        if each.webhook is not None:
            users.setdefault(each.webhook.secret, []).append(f"the webhook {trigger}")
    if not users:
        return {}
    values = read_secret_file(file) if file.exists() else {}
    missing = [f"{name}=… (for {', '.join(users[name])})" for name in sorted(users.keys() - values.keys())]
    if missing:
        raise LocalCloudError(f"The mesh has secrets without a local value. Add to {file}: {'; '.join(missing)}")
    return {name: values[name] for name in sorted(users)}


def read_secret_file(file: Path) -> dict[str, str]:
    """Read lines in the form `NAME=value`; empty lines and lines that start with `#` are skipped.

    A value in double quotes is a JSON string, so that it may have several lines. Messages never contain values.

    Raises:
        LocalCloudError: The file is unreadable, or a line is not in this form.
    """
    try:
        lines = decode_text(file.read_bytes()).splitlines()
    except OSError as error:
        raise LocalCloudError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise LocalCloudError(f"{file} is not UTF-8 text") from None
    values: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, separator, text = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not separator or not text:
            raise LocalCloudError(f"{file}:{number}: should be NAME=value")
        if name in values:
            raise LocalCloudError(f"{file}:{number}: {name} is there twice; keep one of them")
        values[name] = _unquoted(text, f"{file}:{number}")
    return values


def store_secrets(values: Mapping[str, str], endpoint: str, key: AccessKey) -> None:
    """Create or replace the secrets and parameters in a local cloud."""
    parameters, secrets = aws_client("ssm", endpoint, key), aws_client("secretsmanager", endpoint, key)
    for name, value in values.items():
        if name.startswith(PARAMETER_PREFIX):
            parameter = name.removeprefix(PARAMETER_PREFIX)
            parameters.put_parameter(Name=parameter, Value=value, Type="SecureString", Overwrite=True)
        else:
            _store_secret(secrets, name, value)


def _store_secret(secrets: Any, name: str, value: str) -> None:
    try:
        secrets.create_secret(Name=name, SecretString=value)
    except secrets.exceptions.ResourceExistsException:
        secrets.put_secret_value(SecretId=name, SecretString=value)


def _unquoted(text: str, place: str) -> str:
    if text[0] != '"':
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
    try:
        value = json.loads(text)
    except ValueError:
        raise LocalCloudError(f"{place}: a value in double quotes should be a JSON string") from None
    return str(value)
