"""Loads handlers as functions do: `python -P -S importer.py request.json answer.json`.

The library is imported first, as in a function. Each module of handlers is then loaded in a process of its own, forked from this
one, with the variables of its actor. So no import sees what another one has left, and one that ends or holds its process is an
answer as well. What holds on AWS holds here: the code's folder is the working folder, files can be written in the temporary folder
alone, and the author's credentials are out of reach. No call reaches AWS.
"""

import errno
import faulthandler
import importlib
import json
import os
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LIBRARY = ("asya.light.lambdas.sidecar", "asya.ends.lambdas.wiring")
_AT_ONCE = 4
_POLL_SECONDS = 0.02
_TRACE_SECONDS = 1.0
"""How long a process that is late has to write where it is."""
_LONGEST = 400
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The positions of the path and of the folder that it begins at, in the arguments of an event.
_CHANGES = {
    "os.mkdir": (0, 2),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.rename": (1, 3),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
}
_WORKING_FOLDER = -1
_TRACED = re.compile(r'File "(.+)", line (\d+)')
_METADATA_SERVICE = "169.254.169.254"


class _CallsAwsError(OSError):
    """The import calls AWS, which a check does not."""


@dataclass
class _Group:
    """Handlers that one process loads, one after the other.

    Attributes:
        handlers: those that are left, each with its variables.
        alone: the variables in which the handlers differ. After an import that reads one, the others have processes of their own.
    """

    handlers: list[dict[str, Any]]
    alone: frozenset[str]


def main(request_file: str, answer_file: str) -> None:
    """Answer a request: why each handler cannot be loaded, by its actor; nothing of those that can."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    code, temporary = Path(request["code"]), Path(request["temporary"])
    groups = [_Group(handlers, _differing(handlers)) for handlers in request["groups"]]
    sys.pycache_prefix = request["compiled"]
    try:
        for name in _LIBRARY:
            importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - the user's packages may hide those of the library
        failure = {**_described(error, code), "kind": "library"}
        answer = {each["actor"]: failure for group in groups for each in group.handlers}
    else:
        # The processes of one check compile a package of the user once.
        sys.pycache_prefix = str(temporary / "compiled")
        answer = _Importer(code, temporary, request["seconds"], _aws_suffixes()).answers(groups)
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def _differing(handlers: list[dict[str, Any]]) -> frozenset[str]:
    items = [frozenset(each["variables"].items()) for each in handlers]
    return frozenset(name for name, _ in frozenset.union(*items) - frozenset.intersection(*items))


@dataclass
class _Child:
    """A process that loads the handlers of a group.

    Attributes:
        answers: where it writes an answer for each handler.
        output: the file with what the code prints.
        trace: the file with the lines at which it crashed, or was late.
        deadline: until when the next answer is due.
    """

    pid: int
    group: _Group
    answers: int
    output: Path
    trace: Path
    deadline: float
    unread: bytes = b""


@dataclass
class _Importer:
    code: Path
    temporary: Path
    seconds: float
    aws: tuple[str, ...]
    _found: dict[str, Any] = field(default_factory=dict)

    def answers(self, groups: list[_Group]) -> dict[str, Any]:
        """Load all groups, some at once; returns the failures by actor."""
        waiting, running = list(reversed(groups)), list[_Child]()
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                running.append(self._start(waiting.pop()))
            select.select([child.answers for child in running], [], [], _POLL_SECONDS)
            for child in list(running):
                rest = self._looked_at(child)
                if rest is not None:
                    running.remove(child)
                    waiting += reversed(rest)
        return self._found

    def _start(self, group: _Group) -> _Child:
        reading, writing = os.pipe()
        number = time.monotonic_ns()
        output, trace = self.temporary / f"output-{number}", self.temporary / f"trace-{number}"
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                self._load_all(group, writing, output, trace)
            finally:
                os._exit(0)
        os.close(writing)
        os.set_blocking(reading, False)
        return _Child(pid, group, reading, output, trace, self._deadline())

    def _deadline(self) -> float:
        return time.monotonic() + self.seconds + _TRACE_SECONDS

    def _looked_at(self, child: _Child) -> list[_Group] | None:
        """Take what a process has answered; returns the groups that are left once it has ended, and None before."""
        ended, status = os.waitpid(child.pid, os.WNOHANG)
        self._take_answers(child)
        handlers = child.group.handlers
        if handlers and not ended and time.monotonic() < child.deadline:
            return None
        if not ended:
            status = 0
            _kill(child.pid)
            os.waitpid(child.pid, 0)
        else:
            _kill(child.pid)  # what the import has started
        os.close(child.answers)
        if not handlers:
            return []
        if handlers[0].get("is_left"):
            # The import has read what its actor alone has.
            return [_Group([each], frozenset()) for each in handlers]
        failed, *rest = handlers
        self._found[failed["actor"]] = {
            "kind": "ended" if ended else "slow",
            "code": os.waitstatus_to_exitcode(status),
            "message": _text_of(child.output).strip()[-_LONGEST:],
            "places": list(_traced(_text_of(child.trace), self.code)),
        }
        return [_Group([each], frozenset()) for each in rest]

    def _take_answers(self, child: _Child) -> None:
        with suppress(BlockingIOError):
            while part := os.read(child.answers, 65_536):
                child.unread += part
        *lines, child.unread = child.unread.split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if answer is not None and answer.get("is_left"):
                for each in child.group.handlers:
                    each["is_left"] = True
                continue
            handler = child.group.handlers.pop(0)
            child.deadline = self._deadline()
            if answer is not None:
                self._found[handler["actor"]] = answer

    def _load_all(self, group: _Group, answers: int, output: Path, trace: Path) -> None:
        """Load the handlers of a group in this process, which ends then."""
        os.setsid()
        crashes = trace.open("w", encoding="utf-8")
        faulthandler.enable(crashes, all_threads=False)
        with open(os.devnull, "rb") as nothing, output.open("wb") as printed:
            os.dup2(nothing.fileno(), 0)
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
        os.chdir(self.code)
        process = os.getpid()
        reads = _watch_variables()
        _close_doors(_Writable(self.code, (self.temporary, Path("/tmp"), Path("/dev"))), self.aws)
        for index, handler in enumerate(group.handlers):
            _set_variables(handler["variables"])
            reads.clear()
            faulthandler.dump_traceback_later(self.seconds, file=crashes)
            answer = _loaded(handler, self.code, reads)
            if os.getpid() != process:
                return  # the import has forked
            os.write(answers, json.dumps(answer).encode() + b"\n")
            if reads & group.alone and index + 1 < len(group.handlers):
                os.write(answers, b'{"is_left": true}\n')
                return


def _kill(session: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)


def _set_variables(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _watch_variables() -> set[str]:
    """Note from now on which variables code reads; returns the set of their names."""
    names: set[str] = set()
    kind: Any = type(os.environ)
    read = kind.__getitem__

    def noted(variables: Any, name: str) -> str:
        names.add(name)
        value: str = read(variables, name)
        return value

    kind.__getitem__ = noted
    return names


class _Writable:
    """What a function can write.

    Args:
        code: the folder of the code, which nothing can write.
        places: the folders that can be written, if the code is not in them.
    """

    def __init__(self, code: Path, places: tuple[Path, ...]) -> None:
        self._code = f"{os.path.realpath(code)}/"
        self._places = tuple(f"{os.path.realpath(place)}/" for place in places)

    def check(self, path: str | bytes) -> None:
        """Check that a file can be written, or made.

        Raises:
            OSError: it cannot.
        """
        text = os.fsdecode(path)
        folder = f"{os.path.realpath(os.path.dirname(text) or '.')}/"
        if (folder.startswith(self._places) and not folder.startswith(self._code)) or not os.path.isdir(folder):
            return
        if not os.path.isdir(text):  # to make it once more is another error, which code expects
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), text)


def _close_doors(writable: _Writable, aws: tuple[str, ...]) -> None:
    """Refuse calls of AWS, and changes of files that a function cannot change."""

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0].decode() if isinstance(arguments[0], bytes) else str(arguments[0])
            if host == _METADATA_SERVICE or host.lower().rstrip(".").endswith(aws):
                raise _CallsAwsError(f"calls {host}")
        elif event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and flags & _WRITES:
                writable.check(path)
        elif event in _CHANGES:
            at, begins_at = _CHANGES[event]
            if arguments[begins_at] == _WORKING_FOLDER and isinstance(arguments[at], str | bytes):
                writable.check(arguments[at])

    sys.addaudithook(check)


def _aws_suffixes() -> tuple[str, ...]:
    """The ends of the host names of AWS, in all partitions."""
    loaders: Any = importlib.import_module("botocore.loaders")
    partitions = loaders.create_loader().load_data("partitions")["partitions"]
    names = ("dnsSuffix", "dualStackDnsSuffix")
    return tuple(sorted({f".{partition['outputs'][name]}" for partition in partitions for name in names}))


def _loaded(handler: dict[str, Any], code: Path, reads: set[str]) -> dict[str, Any] | None:
    """Load a handler as its function does; returns why that fails."""
    from asya.runtime.load import LoadError, load
    from asya.runtime.signatures import typed

    try:
        function: Callable[..., Any] = load(handler["name"])
        if handler["is_typed"]:
            typed(handler["name"], function, handler["mode"], lists_fan_out=handler["lists_fan_out"])
    except LoadError as error:
        cause = error.__cause__
        if cause is None or type(cause).__name__ == "SignatureError":
            return {"kind": "refused", "message": str(error)}
        failure = _described(cause, code)
    except BaseException as error:  # noqa: BLE001 - an import runs any code
        failure = _described(error, code)
    else:
        return None
    return {**failure, "secrets": sorted(reads & set(handler["secrets"]))}


def _described(error: BaseException, code: Path) -> dict[str, Any]:
    """Describe an error: its text, its places in the code, and what it tells of its cause."""
    described: dict[str, Any] = {
        "kind": "failed",
        "type": type(error).__name__,
        "message": _shortened(str(error.msg) if isinstance(error, SyntaxError) else str(error)),
        "places": list(_places(error, code)),
        "calls_aws": any(_is_of_aws(each) for each in _chain(error)),
    }
    if isinstance(error, ModuleNotFoundError):
        described["module"] = error.name
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        described["opened"] = _in_code(os.path.abspath(os.fsdecode(error.filename)), code)
        described["is_write"] = error.errno == errno.EROFS
    if isinstance(error, KeyError) and error.args and error.args[0] in _asked(error):
        described["variable"] = str(error.args[0])
    return described


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _places(error: BaseException, code: Path) -> Iterator[tuple[str, int | None]]:
    """Yield the lines of deployed files that an error comes from, the innermost first."""
    if isinstance(error, SyntaxError) and (file := _in_code(error.filename or "", code)) is not None:
        yield file, error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (file := _in_code(frame.filename, code)) is not None:
            yield file, frame.lineno


def _traced(text: str, code: Path) -> Iterator[tuple[str, int]]:
    """Yield the lines of deployed files in a trace of faulthandler, the innermost first."""
    for path, line in _TRACED.findall(text):
        if (file := _in_code(path, code)) is not None:
            yield file, int(line)


def _text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _in_code(path: str, code: Path) -> str | None:
    return Path(path).relative_to(code).as_posix() if Path(path).is_relative_to(code) else None


def _asked(error: BaseException) -> Iterator[str]:
    """Yield the variable that the innermost frames of an error ask `os.environ` for."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "noted" and frame.f_code.co_filename == __file__:
            yield frame.f_locals["name"]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that it was raised from, or wraps."""
    seen: list[BaseException] = []
    left: list[Any] = [error]
    while left:
        each = left.pop()
        if isinstance(each, BaseException) and each not in seen:
            seen.append(each)
            yield each
            left += [each.__cause__, each.__context__, *each.args]


def _is_of_aws(error: BaseException) -> bool:
    return isinstance(error, _CallsAwsError) or type(error).__module__.partition(".")[0] == "botocore"


if __name__ == "__main__":
    main(*sys.argv[1:])
