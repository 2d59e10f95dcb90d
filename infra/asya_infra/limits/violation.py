"""One value of a template that exceeds a limit of AWS."""

from dataclasses import dataclass

from asya_infra.limits.aws_limits import Limit


@dataclass(frozen=True, slots=True)
class Violation:
    """A value beyond a limit.

    Attributes:
        stack: the name of the stack.
        resource: the path of the resource in the app, such as `Asya-shop-functions-3/score/Role`; empty for the stack.
        value: the value, in the unit of the limit.
        limit: the limit.
        advice: what to change.
        least: whether the limit is the lowest allowed value.
    """

    stack: str
    resource: str
    value: int
    limit: Limit
    advice: str
    least: bool = False

    def __str__(self) -> str:
        """Return a line for people: where, how much, the limit, what to do."""
        most = f"{self.limit.usable:,}"
        if self.limit.usable != self.limit.value:
            most += f" of {self.limit.value:,}"
        bound = "at least" if self.least else "at most"
        place = self.resource or self.stack
        return f"{place}: {self.value:,} {self.limit.unit}; {bound} {most}. {self.advice} ({self.limit.source})"
