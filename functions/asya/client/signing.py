"""Signs a call to the gateway with the user's AWS credentials (SigV4)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from asya.client.errors import MeshError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.client.connection import Connection


def signable(url: str) -> str:
    """Return a URL encoded as its signature has it: a space is `%20`, and only unreserved characters are plain.

    The receiver decodes path and query and encodes them again before it checks the signature. Another encoding is refused (403).
    """
    parts = urlsplit(url)
    path = "/".join(quote(unquote(segment), safe="") for segment in parts.path.split("/"))
    query = urlencode(parse_qsl(parts.query, keep_blank_values=True), quote_via=quote, safe="")
    return parts._replace(path=path, query=query).geturl()


def signed_headers(
    connection: Connection, method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of a request with its signature.

    Args:
        connection: The mesh, with the user's credentials.
        method: The method of the request.
        url: The whole URL, as `signable` returns it.
        body: The body as it is sent.
        headers: The other headers.

    Raises:
        MeshError: There are no credentials, or they have expired.
    """
    request = AWSRequest(method, url, data=body, headers={"host": urlsplit(url).netloc, **headers})
    try:
        credentials = connection.session.get_credentials()
        if credentials is None:
            raise MeshError("there are no AWS credentials", "Configure them as for the AWS CLI.")
        SigV4Auth(credentials, "execute-api", connection.region).add_auth(request)
    except BotoCoreError as error:  # such as a login that has expired
        raise MeshError(f"the AWS credentials cannot be used: {error}", "Log in as for the AWS CLI.") from error
    return dict(request.headers.items())
