"""Problems of a mesh file: the file, the line, the key, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, order=True)
class Problem:
    """One problem in a mesh file; `where` is the key, such as `actors.clean.timeout`."""

    file: str
    line: int
    where: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}: {self.where}: {self.message}" if self.where else f"{place}: {self.message}"


class MeshFileError(Exception):
    """An invalid mesh file. `problems` has all problems in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'timeout'?`, or an empty text if no known word is similar."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
