"""What a command tells a person when it could not do its work."""


class CommandError(Exception):
    """One line saying what was wrong, and one saying what to do, if there is something.

    Parameters
    ----------
    problem:
        What was wrong, and with what.
    advice:
        What the person can do about it; empty if nothing is known.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
