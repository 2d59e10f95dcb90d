"""A bucket in memory and a mirror of it, for the tests of the stand-in of EMR Serverless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3
from asya_local.emr.settings import ControlRule
from asya_local.emr.storage.mirror import Mirror

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULE = ControlRule()


# The keys whose HEAD is refused, and nothing else of them.
_NO_HEAD = frozenset({"no-head", "write-only", "write-only/_"})


class MirroredS3(MemoryS3):
    """A bucket in memory that refuses keys under `denied/`, and lists of `hidden/` and `broken/`.

    Attributes:
        writes: the writes that took place, in order.
    """

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        super().__init__(bucket=Bucket(objects=dict(objects or {})))
        self.writes: list[str] = []

    @property
    def reads(self) -> list[str]:
        """The keys of the objects that were asked for, in order."""
        return [key for action, key in self.calls if action == "get"]

    def _call(self, bucket: str, what: str, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        action, _, key = what.partition(" ")

        def checked() -> dict[str, Any]:
            code = _refusal(action, key)
            if code is not None:
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, action)
            answer = do()
            if action in ("PutObject", "DeleteObject"):
                self.writes.append(f"{action.removesuffix('Object').lower()} {key}")
            return answer

        return super()._call(bucket, what, checked)


def _refusal(action: str, key: str) -> str | None:
    if action == "HeadObject":
        return "403" if key.startswith("denied/") or key in _NO_HEAD else None
    if action == "ListObjectsV2":
        return "AccessDenied" if key.startswith("hidden/") else "SlowDown" if key.startswith("broken/") else None
    return "AccessDenied" if key.startswith("denied/") else None


class Folder:
    """A mirror of one bucket; `busy` are its open files."""

    def __init__(self, path: Path, objects: dict[str, bytes] | None = None) -> None:
        self.bucket = MirroredS3(objects)
        self.busy: set[str] = set()
        self.root = path / "s3"
        (self.root / "b").mkdir(parents=True)
        self.mirror = Mirror(self.root, path / "staging", self.bucket, RULE, lambda: self.busy)

    def write(self, key: str, text: str = "x") -> None:
        path = self.root / "b" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self) -> dict[str, str]:
        """Return the content of the files by their keys."""
        paths = [path for path in (self.root / "b").rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root / "b")): path.read_text() for path in paths}
