"""The errors the API answers with."""


class ServiceError(Exception):
    """An error answer: its code as boto3 shows it, its message, its HTTP status."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def validation_error(message: str) -> ServiceError:
    """The request is not one the service understands."""
    return ServiceError("ValidationException", message, 400)


def not_found(kind: str, identity: str) -> ServiceError:
    """What the request names does not exist."""
    return ServiceError("ResourceNotFoundException", f"{kind} {identity} does not exist.", 404)


def conflict(message: str) -> ServiceError:
    """The request contradicts what is there."""
    return ServiceError("ConflictException", message, 409)


def throttled() -> ServiceError:
    """The request's rate is over the account's quota."""
    return ServiceError("ThrottlingException", "Rate exceeded", 429)


def access_denied(caller: str, action: str, resource: str) -> ServiceError:
    """The caller's policies do not allow the action."""
    message = (
        f"User: {caller} is not authorized to perform: {action} on resource: {resource} "
        f"because no identity-based policy allows the {action} action"
    )
    return ServiceError("AccessDeniedException", message, 403)
