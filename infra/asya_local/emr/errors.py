"""The errors of the API, with the codes and messages of EMR Serverless."""


class ServiceError(Exception):
    """An error response: the code that boto3 shows, the message and the HTTP status."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def validation_error(message: str) -> ServiceError:
    """Return the error for invalid parameters."""
    return ServiceError("ValidationException", message, 400)


def not_found(kind: str, identity: str) -> ServiceError:
    """Return the error for a missing application or run."""
    return ServiceError("ResourceNotFoundException", f"{kind} {identity} does not exist.", 404)


def conflict(message: str) -> ServiceError:
    """Return the error for a request that contradicts the current state."""
    return ServiceError("ConflictException", message, 409)


def throttled() -> ServiceError:
    """Return the error for a rate above the quota."""
    return ServiceError("ThrottlingException", "Rate exceeded", 429)


def access_denied(caller: str, action: str, resource: str) -> ServiceError:
    """Return the error for an action that the caller's policies do not allow."""
    message = (
        f"User: {caller} is not authorized to perform: {action} on resource: {resource} "
        f"because no identity-based policy allows the {action} action"
    )
    return ServiceError("AccessDeniedException", message, 403)


_REFUSED = {
    "AccessDenied": "AccessDeniedException",
    "IncompleteSignature": "IncompleteSignatureException",
    "InvalidToken": "UnrecognizedClientException",
    "MissingAuthenticationToken": "MissingAuthenticationTokenException",
}


def refused(code: str, message: str) -> ServiceError:
    """Return the error for a request that is not from the holder of its key, by the code of the refusal."""
    if code == "MissingAuthenticationToken":
        message = "Missing Authentication Token"
    elif code in {"SignatureDoesNotMatch", "CredentialDateMismatch", "RequestTimeTooSkewed"}:
        code = "InvalidSignatureException"
    return ServiceError(_REFUSED.get(code, code), message, 403)
