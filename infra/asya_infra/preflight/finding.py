"""The result of one check."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        level: `problem` if the deployment would fail, or the mesh would not work; `warning` if it may run badly, or if the
            check was not possible.
        subject: what was checked, in one word or two.
        message: what is so, and what to do.
    """

    level: Level
    subject: str
    message: str
