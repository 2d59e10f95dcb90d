"""Connects the calls of a function with the objects that answer them."""

from collections.abc import Callable, Iterable
from datetime import datetime

from asya.api_call import ApiCall
from asya.function.aws.settings import Settings
from asya.gateway.access import AccessRules
from asya.gateway.call_table import calls_of
from asya.gateway.http.router import HttpOperation, HttpRoute, Request, Response, required_identity
from asya.protocol.api_errors import ApiError


def routes_of(
    function: str, settings: Settings, handlers: Iterable[object], build: Callable[[str], object] | None = None
) -> tuple[HttpRoute, ...]:
    """Return the routes of a function's calls. A caller without the rights of a call never reaches its handler.

    Args:
        function: The name of the function.
        settings: Its settings.
        handlers: The objects that answer. A call names the class of its object, and the method.
        build: Builds further ones by their classes.

    Raises:
        LookupError: No object answers a call of this mesh.
    """
    by_class = {f"{type(each).__module__}.{type(each).__qualname__}": each for each in handlers}
    access = AccessRules(settings.table, settings.account, settings.region)
    calls = [call for call in calls_of(settings.table) if call.function == function]
    classes = dict.fromkeys(call.handler.rpartition(".")[0] for call in calls)
    if build is not None:
        by_class |= {name: build(name) for name in classes if name not in by_class}
    return tuple(HttpRoute(call, _with_rights(call, access, _handler(call, by_class))) for call in calls)


def _handler(call: ApiCall, by_class: dict[str, object]) -> HttpOperation:
    name, _, method = call.handler.rpartition(".")
    if name not in by_class:
        raise LookupError(f"{call.route}: nothing answers it; build {name} for {call.function}")
    operation: HttpOperation = getattr(by_class[name], method)
    return operation


def _with_rights(call: ApiCall, access: AccessRules, operation: HttpOperation) -> HttpOperation:
    if call.is_public:
        return operation

    def check(request: Request, now: datetime) -> Response:
        caller = access.caller(required_identity(request))
        if call.rights == "operators" and not caller.is_operator:
            raise ApiError(403, "forbidden", "only operators may make this call")
        return operation(request, now)

    return check
