"""An issuer of tokens (OpenID Connect): signs them, and publishes its keys on loopback."""

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


def published(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    """A key as an issuer lists it (JWK)."""
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": KEY_ID, "use": "sig", "alg": "RS256"}


@dataclass(frozen=True)
class Issuer:
    """Somebody whose tokens a gateway takes.

    Attributes:
        url: as the tokens have it.
        audience: whom they are for unless said otherwise.
    """

    url: str
    audience: str
    key: rsa.RSAPrivateKey

    def token(self, subject: str, *, key: rsa.RSAPrivateKey | None = None, seconds: float = 3600, **claims: Any) -> str:
        """A token.

        Args:
            key: another one than the issuer's.
            seconds: until it expires.
            claims: more of them, or others.
        """
        now = int(time.time())
        said = {"iss": self.url, "aud": self.audience, "sub": subject, "iat": now - 60, "exp": int(now + seconds)}
        return jwt.encode({**said, **claims}, key or self.key, algorithm="RS256", headers={"kid": KEY_ID})


@contextmanager
def running_issuer(audience: str) -> Iterator[Issuer]:
    """An issuer on a free loopback port."""
    key = new_key()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = {
                "/.well-known/openid-configuration": {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"},
                "/keys": {"keys": [published(key)]},
            }.get(self.path)
            body = json.dumps(shown).encode()
            self.send_response(404 if shown is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

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
