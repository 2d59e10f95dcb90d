"""Request tokens: the rate at which StartJobRun is taken, and the tokens that make it idempotent. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """A bucket that fills at `per_second` up to `burst`; every request takes one token."""

    per_second: float
    burst: int
    _tokens: float = -1.0
    _filled_at: float = 0.0

    def take(self, now: float) -> bool:
        """Take a token at the monotonic time `now`; False when there is none (the caller is throttled)."""
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
    """A client token came again with other parameters."""


@dataclass(frozen=True)
class _TokenUse:
    fingerprint: str
    run_id: str


class ClientTokens:
    """Which run each client token of one application stands for; never forgotten while the application lives."""

    def __init__(self) -> None:
        self._known: dict[str, _TokenUse] = {}

    def find(self, token: str, fingerprint: str) -> str | None:
        """The id of the run that this token started, or None when it is new.

        Raises:
            TokenMismatchError: The token is known, the request's parameters are not those it came with first.
        """
        known = self._known.get(token)
        if known is None:
            return None
        if known.fingerprint != fingerprint:
            raise TokenMismatchError(token)
        return known.run_id

    def save(self, token: str, fingerprint: str, run_id: str) -> None:
        """Note the run that a new token started."""
        self._known[token] = _TokenUse(fingerprint, run_id)
