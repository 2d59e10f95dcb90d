"""The error that a command reports to its user, and the exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum

from asya.client.errors import MeshError, NotEndedError, NotFoundError, UnreachableError

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


class ExitCode(IntEnum):
    """What the exit code of a command tells; 2 is a wrong option or argument."""

    DONE = 0
    """The command did its work, and the task that it shows has not failed."""
    COMMAND_FAILED = 1
    TASK_FAILED = 3
    """The task that the command shows failed or was canceled."""
    PAUSED = 4
    """The task that the command shows waits for an answer."""
    NOT_FOUND = 5
    """No such task, actor, tool, run or dead letter."""
    UNREACHABLE = 6
    """The gateway, AWS or the local cloud does not answer."""
    NOT_ENDED = 7
    """The task has not ended within the time limit of the wait."""


class CommandError(MeshError):
    """A failed command.

    Args:
        problem: What is wrong, and where.
        advice: What the user can do about it; empty if unknown.
        code: The exit code.
    """

    def __init__(self, problem: str, advice: str = "", code: ExitCode = ExitCode.COMMAND_FAILED) -> None:
        super().__init__(problem, advice)
        self.code = code


_CODES = {
    NotFoundError: ExitCode.NOT_FOUND,
    UnreachableError: ExitCode.UNREACHABLE,
    NotEndedError: ExitCode.NOT_ENDED,
}


def exit_code_of(error: MeshError) -> ExitCode:
    """Return the exit code of a command that ends with this error, be it the command's own or that of the client."""
    if isinstance(error, CommandError):
        return error.code
    return _CODES.get(type(error), ExitCode.COMMAND_FAILED)
