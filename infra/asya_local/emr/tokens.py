"""Rate limits of calls, and the client tokens that make StartJobRun idempotent. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """A token bucket that fills at `per_second` up to `burst`; each call takes one token."""

    per_second: float
    burst: int
    _tokens: float = -1.0
    _filled_at: float = 0.0

    def take(self, now: float) -> bool:
        """Take a token at the monotonic time `now`; return False if the caller is throttled."""
        if self._tokens < 0:
            self._tokens = float(self.burst)
        else:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled_at) * self.per_second)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class TokenMismatchError(Exception):
    """A client token is repeated with other parameters."""


@dataclass(frozen=True)
class _TokenUse:
    fingerprint: str
    run_id: str


class ClientTokens:
    """The run of each client token of one application. Tokens do not expire."""

    def __init__(self) -> None:
        self._uses: dict[str, _TokenUse] = {}

    def find(self, token: str, fingerprint: str) -> str | None:
        """Return the id of the run that this token started, or None for a new token.

        Raises:
            TokenMismatchError: The first request with this token had other parameters.
        """
        use = self._uses.get(token)
        if use is None:
            return None
        if use.fingerprint != fingerprint:
            raise TokenMismatchError(token)
        return use.run_id

    def save(self, token: str, fingerprint: str, run_id: str) -> None:
        """Save the run that a new token started."""
        self._uses[token] = _TokenUse(fingerprint, run_id)
