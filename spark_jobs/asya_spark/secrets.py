"""Sets the secrets of an actor as environment variables of the driver, and keeps their values out of texts (`protocol §10`).

The arguments of a run name the secrets. Their values exist in this process alone: Spark's settings, which its event log and
its UI show, do not have them, so executors do not see them.
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from asya.runtime.secret_values import PARAMETER_PREFIX, redact
from asya_spark.calls.errors import JobError

# With boto3's backoff these outlast a throttled minute. The driver is billed meanwhile.
_ATTEMPTS = 8
_TIMEOUT_SECONDS = 5
# As many threads read the bodies of envelopes at the same time.
_CONNECTIONS = 32

Connect = Callable[[str], Any]


class SecretError(RuntimeError):
    """A secret cannot be read. The message names the variable, the secret and the cause, but never a value."""


def connector(region: str | None) -> Connect:
    """A function that makes the boto3 client of a service.

    Args:
        region: the region of the mesh; None for that of the process.
    """

    def connect(service: str) -> Any:
        # Only runs with secrets and those that linger need boto3, so only they have it: it comes with the archive of packages.
        import boto3
        from botocore.config import Config

        timeouts: dict[str, Any] = {"connect_timeout": _TIMEOUT_SECONDS, "read_timeout": _TIMEOUT_SECONDS}
        retries: Any = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
        config = Config(retries=retries, max_pool_connections=_CONNECTIONS, **timeouts)
        client: Any = boto3.client  # typed for literal names alone
        return client(service, region_name=region, config=config)

    return connect


class Secrets:
    """The secrets of one run, by variable."""

    def __init__(
        self,
        references: Mapping[str, str],
        connect: Connect,
        variables: MutableMapping[str, str] = os.environ,
    ) -> None:
        """Prepares the secrets; `set_variables` reads them.

        Args:
            references: the name of a secret, or `ssm:` and the name of a parameter, by variable.
            connect: makes the boto3 client of a service.
            variables: the environment variables of the process.
        """
        self._references = references
        self._connect = connect
        self._variables = variables
        self._values: dict[str, set[str]] = {}

    def set_variables(self) -> None:
        """Reads all secrets, then sets their variables.

        Raises:
            SecretError: if one cannot be read.
        """
        values = {variable: self._read(variable, reference) for variable, reference in self._references.items()}
        self._values = {variable: {value} for variable, value in values.items()}
        self._variables.update(values)

    def redact(self, text: str) -> str:
        """A text with `[secret NAME]` for each value."""
        return redact(text, self._values)

    def redact_error(self, error: JobError) -> JobError:
        """An error with `[secret NAME]` for each value, in its message and its traceback."""
        return replace(error, message=self.redact(error.message), traceback=self.redact(error.traceback))

    def _read(self, variable: str, reference: str) -> str:
        what = f"the secret {reference!r} for the variable {variable}"
        try:
            value = self._value(reference)
        except ModuleNotFoundError as error:
            raise SecretError(
                f"{what} cannot be read, because the Python of the run has no {error.name}; the archive of the mesh's "
                "packages brings it, so keep that archive's folders in the PYTHONPATH of the driver"
            ) from None
        except Exception as error:  # noqa: BLE001 - an asya_spark without boto3 cannot name the errors of boto3
            raise SecretError(
                f"{what} cannot be read ({_name(error)}); check that it exists in the region of the mesh and that the "
                "actor may decrypt it"
            ) from None
        if not isinstance(value, str) or "\0" in value:
            raise SecretError(f"{what} is binary; store it as text")
        return value

    def _value(self, reference: str) -> object:
        if reference.startswith(PARAMETER_PREFIX):
            name = reference.removeprefix(PARAMETER_PREFIX)
            return self._connect("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]
        return self._connect("secretsmanager").get_secret_value(SecretId=reference).get("SecretString")


NO_SECRETS = Secrets({}, connector(None))


def _name(error: Exception) -> str:
    """The error code of AWS, or the type of another error."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or type(error).__name__)
