"""`python -m asya_infra.permissions.statements_page` writes docs/reference/senders.md: who may say what to which function."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from asya import registry
from asya.manifest import ActorFunction, Function
from asya.senders.statements import Proof, Speaker, Statement

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "senders.md"
_HEAD = """# Who says what

A message on a queue is a statement: a task goes on, a task has ended, a slice is lost. This page lists the statements that each
function hears, and who may say each ([rules](../protocol.md#names-in-aws)). The first column of senders needs its role alone:
these functions run no code of users. All other roles have no permission to send to the queue. The functions of ends, sets, job
runs, reports, notifications and triggers refuse them, too. `python -m asya_infra.permissions.statements_page` writes the page from
`statements.py` beside each manifest.

Other senders need more, because their role is that of code of users, or no role of the mesh:
"""
COUNTS, REFUSED = "counts", "refused"
OTHERS = ("of another owner", "of the gateway", "raw", "child", "of another generation", "of another set")
"""Tasks that are not the sender's own."""
_WORDS: Mapping[Proof, str] = {
    Proof.ROLE: "nothing more",
    Proof.EDGE: "an edge of the mesh file",
    Proof.CLAIM: "the claim on the id",
    Proof.KEY: "the key of the task",
    Proof.SERVICE: "AWS, which the function asks",
    Proof.POLICY: "the policy of the queue",
}


def verdict(proof: Proof | None, *, is_own: bool) -> str:
    """Return whether a statement counts about a task of the sender's own, or about another one."""
    if proof is None:
        return REFUSED
    return COUNTS if is_own or proof in (Proof.ROLE, Proof.EDGE) else REFUSED


def as_page() -> str:
    """Return the page: what shows a statement, and the statements of each function."""
    declared = registry.PRODUCT
    kinds = [line for _, each in sorted(declared.actor_functions.items()) for line in _section(each)]
    functions = [line for _, each in sorted(declared.functions.items()) if each.hears for line in _section(each)]
    return "\n".join([_HEAD, *_proofs(), "", *kinds, *functions]).rstrip() + "\n"


def _proofs() -> Iterator[str]:
    used = {proof for each in _declared() for statement in each.hears for proof in statement.shown.values()}
    yield f"| shown by | about a task of its own | about another task: {', '.join(OTHERS)} |"
    yield "|---|---|---|"
    for proof in (each for each in Proof if each in used):
        yield f"| {_WORDS[proof]} | {verdict(proof, is_own=True)} | {verdict(proof, is_own=False)} |"


def _declared() -> Iterable[Function | ActorFunction]:
    return (*registry.PRODUCT.functions.values(), *registry.PRODUCT.actor_functions.values())


def _section(function: Function | ActorFunction) -> Iterator[str]:
    title = function.name if isinstance(function, Function) else f"Kind `{function.kind}`"
    yield from (f"## {title}", "", "| may | by its role alone | shown by more than its role |", "|---|---|---|")
    for statement in function.hears:
        text = statement.text.format(about="an actor")
        queue = f" (`{statement.queue}`)" if statement.queue else ""
        shown = "; ".join(f"{who.value}: {_WORDS[proof]}" for who, proof in statement.shown.items())
        yield f"| {text}{queue} | {_named(statement)} | {shown} |"
    yield ""


def _named(statement: Statement) -> str:
    groups = [each.value for each in statement.by if isinstance(each, Speaker)]
    named = sorted({f"`{each}`" for each in statement.by if isinstance(each, str)})
    return ", ".join([*groups, *named])


if __name__ == "__main__":
    PAGE.write_text(as_page(), encoding="utf-8")
