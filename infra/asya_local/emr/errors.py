"""The errors the API answers with."""


class ApiError(Exception):
    """An error answer: its code as boto3 shows it, its message, its HTTP status."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def validation(message: str) -> ApiError:
    """The request is not one the service understands."""
    return ApiError("ValidationException", message, 400)


def not_found(kind: str, identity: str) -> ApiError:
    """What the request names does not exist."""
    return ApiError("ResourceNotFoundException", f"{kind} {identity} does not exist.", 404)


def conflict(message: str) -> ApiError:
    """The request contradicts what is there."""
    return ApiError("ConflictException", message, 409)


def throttled() -> ApiError:
    """The request's rate is over the account's quota."""
    return ApiError("ThrottlingException", "Rate exceeded", 429)


def denied(caller: str, action: str, resource: str) -> ApiError:
    """The caller's policies do not allow the action."""
    message = (
        f"User: {caller} is not authorized to perform: {action} on resource: {resource} "
        f"because no identity-based policy allows the {action} action"
    )
    return ApiError("AccessDeniedException", message, 403)
