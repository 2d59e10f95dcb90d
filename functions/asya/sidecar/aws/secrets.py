"""Reads an actor's secrets from Secrets Manager and Systems Manager into environment variables (`protocol §6`).

Only functions of actors with secrets import this module, because Powertools' providers would lengthen each cold start.
"""

from collections.abc import Callable, Mapping, MutableMapping

from aws_lambda_powertools.utilities.parameters import SecretsProvider, SSMProvider
from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
from botocore.exceptions import ClientError

from asya.function.aws import clients
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya.runtime.time_limit import Timer
from asya.sidecar.secret_errors import SecretError

# A rotated secret reaches the handler after this time at most.
MAX_AGE_SECONDS = 300.0
# How long a value is used while the service gives no answer, and how often it is asked meanwhile.
MAX_STALE_SECONDS = 3600.0
RETRY_SECONDS = 30.0
_THROTTLED = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"})


class _RefusedError(Exception):
    """The service refuses to give the secret, so an earlier value must not be used any more."""


class Secrets:
    """The secrets of one actor, by variable.

    Attributes:
        known_values: every value that a variable had in this process. User code may keep a value that was rotated since,
            such as in a client that its module made when it was imported.
    """

    def __init__(
        self,
        references: Mapping[str, str],
        variables: MutableMapping[str, str],
        timer: Timer,
        on_stale: Callable[[SecretError], None],
    ) -> None:
        """Prepare the secrets; `refresh` reads them.

        Args:
            references: the name of a secret, or `ssm:` and the name of a parameter, by variable.
            variables: the environment variables of the process.
            timer: the clock of the ages.
            on_stale: called with the cause if an earlier value is used longer.
        """
        self.known_values: dict[str, set[str]] = {variable: set() for variable in references}
        self._references = references
        self._variables = variables
        self._timer = timer
        self._on_stale = on_stale
        self._is_set = False
        self._read_at = 0.0
        self._expires_at = 0.0

    def refresh(self) -> None:
        """Set the variables, unless their values are fresh.

        Raises:
            SecretError: a secret cannot be read, and there is no earlier value that may be used.
        """
        moment = self._timer.monotonic()
        if self._is_set and moment < self._expires_at:
            return
        try:
            values = {variable: self._value(variable) for variable in self._references}
        except SecretError as error:
            is_refused = isinstance(error.__cause__, _RefusedError)
            if not self._is_set or is_refused or moment - self._read_at >= MAX_STALE_SECONDS:
                raise
            self._expires_at = moment + RETRY_SECONDS
            self._on_stale(error)
            return
        self._is_set, self._read_at, self._expires_at = True, moment, moment + MAX_AGE_SECONDS
        for variable, value in values.items():
            self.known_values[variable].add(value)
        self._variables.update(values)

    def _value(self, variable: str) -> str:
        reference = self._references[variable]
        what = f"the secret {reference!r} for the variable {variable}"
        try:
            value = _read(reference)
        except GetParameterError as error:
            # Powertools has the error of the SDK as the context of its own.
            cause = error.__context__
            advice = "check that it exists in the region of the mesh and that the actor may decrypt it"
            text = f"{what} cannot be read ({_name(cause)}); {advice}"
            raise SecretError(text) from (_RefusedError(_name(cause)) if _is_refusal(cause) else None)
        if not isinstance(value, str) or "\0" in value:
            raise SecretError(f"{what} is binary; store it as text") from _RefusedError()
        return value


def _read(reference: str) -> object:
    """Read a value with Powertools. Its own cache has another clock, so it is passed by."""
    if reference.startswith(PARAMETER_PREFIX):
        parameters = SSMProvider(boto3_client=clients.ssm())
        return parameters.get(reference.removeprefix(PARAMETER_PREFIX), decrypt=True, force_fetch=True)
    return SecretsProvider(boto3_client=clients.secrets_manager()).get(reference, force_fetch=True)


def _name(error: BaseException | None) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else type(error).__name__


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether the service answered that it will not give the value: unknown, denied, deleted, not decryptable."""
    if not isinstance(error, ClientError) or _name(error) in _THROTTLED:
        return False
    return 400 <= int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)) < 500
