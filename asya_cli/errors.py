"""The error that a command reports to its user."""


class CommandError(Exception):
    """A failed command.

    Args:
        problem: What is wrong, and where.
        advice: What the user can do about it; empty if unknown.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
