"""Turns errors of AWS into those of commands: it refused a call, or it did not answer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import UnreachableError
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def aws_errors(problem: str, advice: str = "") -> Iterator[None]:
    """Turn an error of AWS in the block into that of a command.

    Args:
        problem: What cannot be done.
        advice: What the user can do if AWS refuses the call.

    Raises:
        CommandError: AWS refused the call.
        UnreachableError: AWS did not answer.
    """
    try:
        yield
    except ClientError as error:
        raise CommandError(f"{problem}: {error}", advice) from error
    except BotoCoreError as error:
        raise UnreachableError(f"{problem}: {error}") from error
