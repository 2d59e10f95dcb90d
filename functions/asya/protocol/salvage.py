"""Finds the readable members of a message that is no valid JSON (`protocol §5.1`).

JSON readers give up on half a surrogate, on deep nesting and on a cut text. This scanner only matches brackets, in one pass
and without recursion, so the id and the headers beside such a value are still found.
"""

import re

# A string without its end takes the rest of the text: no second pass over what follows a quote.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:(?P<closed>")|\\?\Z)|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)
# A megabyte of brackets would take seconds, and the rest of the batch would wait.
_LIMIT = 128 * 1024
_NAME = re.compile(r'"([^"\\]*)"')


def members(text: str) -> dict[str, str]:
    """The complete members of the outermost object, each as JSON text; none if the text is no object.

    Only the first 128 Ki characters are read. A name with an escape is left out. Of two members with the same name the
    last one counts.
    """
    spans: dict[str, tuple[int, int]] = {}
    name: str | None = None
    start: int | None = None  # of the value that is being scanned
    depth = 0
    for token in _TOKEN.finditer(text[:_LIMIT]):
        sign = token[0]
        is_cut = sign[0] == '"' and not token["closed"]
        if is_cut or (not depth and sign != "{"):
            break
        if depth == 1 and sign in ",}":
            name = start = None
        elif depth == 1 and sign == ":":
            start = token.end()
        elif depth == 1 and start is None:
            match = _NAME.fullmatch(sign)
            name = match[1] if match else None
        depth += (sign in "{[") - (sign in "}]")
        if depth == 1 and name is not None and start is not None and sign != ":":
            spans[name] = start, token.end()
        elif not depth:
            break
    return {name: text[start:end].strip() for name, (start, end) in spans.items()}
