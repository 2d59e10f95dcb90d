"""An issuer of tokens (OpenID Connect) that signs them and publishes its keys on loopback."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY_ID = "tests"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_jwk(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    """Returns the public key as a JWK."""
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": KEY_ID, "use": "sig", "alg": "RS256"}


@dataclass(frozen=True)
class Issuer:
    """An issuer whose tokens a gateway accepts.

    Attributes:
        url: The claim `iss` of its tokens.
        audience: The default of the claim `aud`.
    """

    url: str
    audience: str
    key: rsa.RSAPrivateKey

    def token(self, subject: str, *, key: rsa.RSAPrivateKey | None = None, seconds: float = 3600, **claims: Any) -> str:
        """Returns a signed token.

        Args:
            key: A signing key other than the issuer's.
            seconds: The time until the token expires.
            claims: Claims to add or to replace.
        """
        now = int(time.time())
        defaults = {"iss": self.url, "aud": self.audience, "sub": subject, "iat": now - 60, "exp": int(now + seconds)}
        return jwt.encode({**defaults, **claims}, key or self.key, algorithm="RS256", headers={"kid": KEY_ID})


@contextmanager
def running_issuer(audience: str) -> Iterator[Issuer]:
    """Runs an issuer on a free loopback port."""
    key = new_key()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = {
                "/.well-known/openid-configuration": {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"},
                "/keys": {"keys": [public_jwk(key)]},
            }.get(self.path)
            body = json.dumps(document).encode()
            self.send_response(404 if document is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}", audience, key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
