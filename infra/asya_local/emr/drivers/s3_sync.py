"""Keeps S3 and the folder that Spark sees as S3 the same, for a job that uses boto3 beside Spark. The driver loads it by its path.

On EMR Serverless both use one S3. Here Spark uses a folder (`asya_local.emr.storage.mirror`), so the driver asks the runner

- to *push* before boto3 writes, lists, or reads an object that is in the folder: then S3 has all that Spark wrote.
- to *pull* before Spark gets its next command, if boto3 has read or written something since: then Spark sees what S3 has now, or at
  least the objects that boto3 wrote.

A read that fails, such as a poll for an object that does not exist yet, asks for nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLIENTS = "botocore.client"
_WRITES = frozenset({"PutObject", "CompleteMultipartUpload", "CopyObject", "DeleteObject", "DeleteObjects"})
_LISTS = frozenset({"ListObjects", "ListObjectsV2"})
_READS = frozenset({"GetObject", "HeadObject"})
_CONFLICTS = frozenset({409, 412})
# py4j sends it whenever Python frees a Java object, maybe in the middle of a request.
_RELEASE = "m\n"
_EVERYTHING = None


class S3SyncError(RuntimeError):
    """The stand-in cannot read the local S3. On EMR Serverless the reader of Spark would fail."""


class S3Sync:
    """Asks for a push or a pull when one is due. Thread-safe.

    Args:
        folder: The folder of the mirror.
        ask: Sends a request and returns its error, or an empty text.
    """

    def __init__(self, folder: str, ask: Callable[[dict[str, Any]], str]) -> None:
        self._folder = folder
        self._ask = ask
        self._lock = threading.Lock()
        self._asking: int | None = None
        self._process = os.getpid()
        self._marks_lock = threading.Lock()
        self._marks: dict[str | None, int] = {}
        """What Spark does not see yet: names of objects, or `_EVERYTHING`; with the number of the mark."""
        self._latest = 0
        self._is_closed = False

    def before(self, action: str, parameters: dict[str, Any]) -> None:
        """Prepare a call of S3."""
        is_due = action in _WRITES | _LISTS or (
            action in _READS and os.path.exists(os.path.join(self._folder, *_names(action, parameters)))
        )
        if is_due:
            with self._turn() as may_ask:
                if may_ask:
                    self._request("push", None)

    def after(self, action: str, parameters: dict[str, Any], status: int) -> None:
        """Note what the job knows after a call of S3.

        Args:
            action: The action.
            parameters: Its parameters.
            status: The status of the response; 0 without one.
        """
        if action in _WRITES:
            # A call without a response may have written. A conflict says that there is an object of others.
            self._mark(*([_EVERYTHING] if status in _CONFLICTS else _names(action, parameters)))
        elif action in _READS | _LISTS and 200 <= status < 300:
            self._mark(_EVERYTHING)

    def refresh(self) -> None:
        """Let Spark see what the job knows from S3.

        Raises:
            S3SyncError: S3 fails.
        """
        if not self._marks:
            return
        with self._turn() as may_ask:
            with self._marks_lock:
                seen, latest = list(self._marks), self._latest
            if not may_ask or not seen:
                return
            self._request("pull", None if _EVERYTHING in seen else seen)
            with self._marks_lock:
                self._marks = {name: number for name, number in self._marks.items() if number > latest}

    def close(self) -> None:
        """Ask for nothing more: the job has ended, but its threads may go on."""
        with self._lock:
            self._is_closed = True

    def _mark(self, *names: str | None) -> None:
        with self._marks_lock:
            self._latest += 1
            self._marks.update(dict.fromkeys(names, self._latest))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[bool]:
        """Wait for the requests of other threads. A fork of the driver must not ask, its pipe is that of the driver."""
        thread = threading.get_ident()
        if self._process != os.getpid() or self._asking == thread:
            yield False
            return
        with self._lock:
            self._asking = thread
            try:
                yield not self._is_closed
            finally:
                self._asking = None

    def _request(self, kind: str, names: list[Any] | None) -> None:
        error = self._ask({"sync": kind, "names": names})
        if error:
            raise S3SyncError(error)


def _names(action: str, parameters: dict[str, Any]) -> list[str]:
    """Return the objects of a call, as `bucket/key`."""
    objects = parameters.get("Delete", {}).get("Objects", []) if action == "DeleteObjects" else [parameters]
    return [f"{parameters.get('Bucket')}/{each.get('Key')}" for each in objects]


@contextlib.contextmanager
def synchronizing(folder: str, gateway: Any, ask: Callable[[dict[str, Any]], str]) -> Iterator[None]:
    """Synchronize the job's calls of S3 by boto3 with Spark's folder.

    Args:
        folder: The folder of the mirror.
        gateway: py4j's gateway to the JVM.
        ask: Sends a request to the runner and returns its error.
    """
    sync = S3Sync(folder, ask)
    wrapped: list[tuple[Any, Any]] = []

    def wrap(module: Any) -> None:
        base = module.BaseClient
        wrapped.append((base, base._make_api_call))
        base._make_api_call = _synchronized(base._make_api_call, sync)

    java = gateway._gateway_client
    finder: Any = _Finder(wrap)
    java.send_command = _refreshed(java.send_command, sync)
    sys.meta_path.insert(0, finder)
    if _CLIENTS in sys.modules:
        wrap(sys.modules[_CLIENTS])
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        del java.send_command
        for base, original in wrapped:
            base._make_api_call = original
        sync.close()


def _synchronized(call: Callable[..., Any], sync: S3Sync) -> Callable[..., Any]:
    @functools.wraps(call)
    def synchronized(self: Any, operation_name: str, api_params: dict[str, Any]) -> Any:
        if self.meta.service_model.service_name != "s3":
            return call(self, operation_name, api_params)
        sync.before(operation_name, api_params)
        status = 0
        try:
            response = call(self, operation_name, api_params)
            status = _status(response)
        except Exception as error:
            status = _status(getattr(error, "response", None))
            raise
        finally:
            sync.after(operation_name, api_params, status)
        return response

    return synchronized


def _status(response: Any) -> int:
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    return int(metadata.get("HTTPStatusCode", 0))


def _refreshed(send: Callable[..., Any], sync: S3Sync) -> Callable[..., Any]:
    @functools.wraps(send)
    def refreshed(command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith(_RELEASE):
            sync.refresh()
        return send(command, *args, **kwargs)

    return refreshed


class _Finder:
    """Finds botocore's clients as Python does, and passes their module on when it is loaded."""

    def __init__(self, loaded: Callable[[Any], None]) -> None:
        self._loaded = loaded

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of the module of botocore's clients; None for all others."""
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path, target) if name == _CLIENTS else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._loaded)
        return spec


class _Loader:
    """Loads a module by its own loader, which it then has."""

    def __init__(self, loader: Any, loaded: Callable[[Any], None]) -> None:
        self._loader = loader
        self._loaded = loaded

    def create_module(self, spec: Any) -> Any:
        """Create the module."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Execute the module, then pass it on."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._loaded(module)
