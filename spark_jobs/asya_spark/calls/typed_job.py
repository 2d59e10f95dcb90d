"""Holds a job function to its annotations, as a handler (`protocol §6.typed`)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.contracts.signature import is_annotated


@dataclass(frozen=True)
class TypedJob:
    """A job function and its contract.

    Attributes:
        call: calls the function with the session and a payload; raises a `ContractError` for one that does not fit.
        give: makes the JSON value of a result; None if the type of results is not known.
        has_decimals: whether `call` needs the digits of numbers.
    """

    call: Callable[[Any, Any], Any]
    give: Callable[[Any], Any] | None = None
    has_decimals: bool = False


def typed_job(job: Callable[..., Any]) -> TypedJob:
    """Holds `job(spark, payload)` or `job(spark, key, key, …)` to its annotations.

    Raises:
        SignatureError: the function cannot be called with a session and one payload.
    """
    if not is_annotated(job):
        return TypedJob(job)
    from asya.contracts.function import contract_of

    contract = contract_of(job, given=1)
    is_keyed = contract.keys is not None

    def call(session: Any, payload: Any) -> Any:
        arguments = contract.arguments(payload)
        return job(session, **arguments) if is_keyed else job(session, arguments)

    give = contract.dumped if contract.result is not None else None
    return TypedJob(call, give, has_decimals=contract.has_decimals)
