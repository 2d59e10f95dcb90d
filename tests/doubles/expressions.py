"""DynamoDB's expressions, as far as the mesh uses them, and as strict as AWS: what is not understood is an error.

Conditions: comparisons, BETWEEN, IN, AND, OR, NOT, attribute_exists, attribute_not_exists, begins_with, contains, size.
Updates: SET (with +, -, if_not_exists, list_append), REMOVE, ADD, DELETE; overlapping paths are refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

Value = Mapping[str, Any]
Item = Mapping[str, Value]
Path = tuple[str | int, ...]
Condition = Callable[[Item], bool]
Operand = Callable[[Item], Value | None]

_TOKEN = re.compile(r"\s*(?:(?P<word>[#:]?[A-Za-z_][\w]*|[#:]\w+)|(?P<number>\d+)|(?P<sign><>|<=|>=|[=<>(),.\[\]+-]))")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")
_RESERVED = frozenset(ReservedKeywords.get_reserved_keywords())


class ExpressionError(ValueError):
    """What AWS answers with a ValidationException."""


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[str, ...]:
    found: list[str] = []
    place = 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(f"Invalid expression: Syntax error near {text[place : place + 10]!r}")
        found.append(match[0].strip())
        place = match.end()
    return tuple(found)


@dataclass
class Request:
    """The names and values that come with the expressions of one request; each must be used by one of them."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def condition(self, text: str) -> Condition:
        """Parse a condition."""
        parser = _Parser(text, self)
        found = parser.condition()
        parser.end()
        return found

    def update(self, text: str) -> "Update":
        """Parse an update."""
        return _Parser(text, self).update()

    def key_condition(self, text: str) -> list[tuple[str, str, list[Value]]]:
        """Parse a key condition: attribute, comparison and what it is compared with."""
        return list(_Parser(text, self).key_conditions())

    def check_all_used(self) -> None:
        """Names or values that no expression uses are a mistake."""
        for kind, given in (("Names", self.names), ("Values", self.values)):
            unused = sorted(set(given) - self.used)
            if unused:
                raise ExpressionError(
                    f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{', '.join(unused)}}}"
                )


@dataclass
class Update:
    """A parsed update: which paths are set to what, removed, added to or taken from."""

    sets: list[tuple[Path, Operand]] = field(default_factory=list)
    removes: list[Path] = field(default_factory=list)
    adds: list[tuple[Path, Value]] = field(default_factory=list)
    deletes: list[tuple[Path, Value]] = field(default_factory=list)

    @property
    def paths(self) -> list[Path]:
        """All paths that it touches."""
        return [
            *(path for path, _ in self.sets),
            *self.removes,
            *(path for path, _ in self.adds),
            *(path for path, _ in self.deletes),
        ]

    def check(self) -> None:
        """Raise on overlapping paths."""
        paths = self.paths
        for number, one in enumerate(paths):
            for other in paths[number + 1 :]:
                shorter = min(len(one), len(other))
                if one[:shorter] == other[:shorter]:
                    raise ExpressionError(
                        "Invalid UpdateExpression: Two document paths overlap with each other; "
                        f"must remove or rewrite one of these paths; path one: {one}, path two: {other}"
                    )

    def applied(self, item: Item) -> dict[str, Value]:
        """The item after it. Every right-hand side is read from the item as it was."""
        computed = [(path, _required(operand(item))) for path, operand in self.sets]
        after: dict[str, Any] = {name: _copied(value) for name, value in item.items()}
        for path, value in computed:
            _assign(after, path, value)
        for path, value in self.adds:
            _assign(after, path, _added(lookup(item, path), value))
        for path, value in self.deletes:
            left = _taken(lookup(item, path), value)
            if left is None:
                _remove(after, path)
            else:
                _assign(after, path, left)
        for path in sorted(self.removes, key=str, reverse=True):
            _remove(after, path)
        return after


class _Parser:
    """Recursive descent; gives closures over the item."""

    def __init__(self, text: str, request: Request) -> None:
        self._tokens = _tokens(text)
        self._place = 0
        self._request = request

    def condition(self) -> Condition:
        terms = [self._conjunction()]
        while self._accept("OR"):
            terms.append(self._conjunction())
        return terms[0] if len(terms) == 1 else lambda item: any(term(item) for term in terms)

    def _conjunction(self) -> Condition:
        terms = [self._negation()]
        while self._accept("AND"):
            terms.append(self._negation())
        return terms[0] if len(terms) == 1 else lambda item: all(term(item) for term in terms)

    def _negation(self) -> Condition:
        if self._accept("NOT"):
            inner = self._negation()
            return lambda item: not inner(item)
        if self._peek() == "(":
            self._expect("(")
            inner = self.condition()
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._peek(1) == "(" and self._peek() in ("attribute_exists", "attribute_not_exists"):
            function = self._next()
            self._expect("(")
            path = self._path()
            self._expect(")")
            return lambda item: (lookup(item, path) is not None) == (function == "attribute_exists")
        if self._peek(1) == "(" and self._peek() in ("begins_with", "contains"):
            function = self._next()
            self._expect("(")
            path = self._path()
            self._expect(",")
            wanted = self._operand()
            self._expect(")")
            test = _begins_with if function == "begins_with" else _contains
            return lambda item: test(lookup(item, path), wanted(item))
        left = self._operand()
        if self._accept("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            high = self._operand()
            return lambda item: _compared(">=", left(item), low(item)) and _compared("<=", left(item), high(item))
        if self._accept("IN"):
            self._expect("(")
            options = [self._operand()]
            while self._accept(","):
                options.append(self._operand())
            self._expect(")")
            return lambda item: any(_compared("=", left(item), option(item)) for option in options)
        sign = self._next()
        if sign not in _COMPARISONS:
            raise ExpressionError(f"Invalid expression: Syntax error; token: {sign!r}")
        right = self._operand()
        return lambda item: _compared(sign, left(item), right(item))

    def update(self) -> Update:
        found = Update()
        seen: set[str] = set()
        while self._place < len(self._tokens):
            clause = self._next().upper()
            if clause not in _CLAUSES or clause in seen:
                raise ExpressionError(f"Invalid UpdateExpression: Syntax error; token: {clause!r}")
            seen.add(clause)
            while True:
                self._action(clause, found)
                if not self._accept(","):
                    break
        if not seen:
            raise ExpressionError("Invalid UpdateExpression: The expression can not be empty;")
        found.check()
        return found

    def _action(self, clause: str, found: Update) -> None:
        path = self._path()
        match clause:
            case "SET":
                self._expect("=")
                found.sets.append((path, self._sum()))
            case "REMOVE":
                found.removes.append(path)
            case "ADD":
                found.adds.append((path, self._value(("N", "NS", "SS", "BS"))))
            case _:
                found.deletes.append((path, self._value(("NS", "SS", "BS"))))

    def _sum(self) -> Operand:
        left = self._operand()
        if self._peek() in ("+", "-"):
            sign = self._next()
            right = self._operand()
            return lambda item: _arithmetic(sign, left(item), right(item))
        return left

    def _operand(self) -> Operand:
        word = self._peek()
        if self._peek(1) == "(" and word in ("if_not_exists", "list_append", "size"):
            return self._function(self._next())
        if word is not None and word.startswith(":"):
            value = self._value()
            return lambda _: value
        path = self._path()
        return lambda item: lookup(item, path)

    def _function(self, name: str) -> Operand:
        self._expect("(")
        if name == "size":
            sized = self._path()
            self._expect(")")
            return lambda item: _size(lookup(item, sized))
        if name == "if_not_exists":
            path = self._path()
            self._expect(",")
            default = self._sum()
            self._expect(")")
            return lambda item: default(item) if (found := lookup(item, path)) is None else found
        first = self._operand()
        self._expect(",")
        second = self._operand()
        self._expect(")")
        return lambda item: {"L": [*_required(first(item))["L"], *_required(second(item))["L"]]}

    def key_conditions(self) -> Iterator[tuple[str, str, list[Value]]]:
        while True:
            if self._peek() == "begins_with":
                self._next()
                self._expect("(")
                name = self._name()
                self._expect(",")
                yield name, "begins_with", [self._value(("S", "B"))]
                self._expect(")")
            else:
                name, sign = self._name(), self._next()
                if sign.upper() == "BETWEEN":
                    low = self._value()
                    self._expect("AND")
                    yield name, "BETWEEN", [low, self._value()]
                elif sign in _COMPARISONS and sign != "<>":
                    yield name, sign, [self._value()]
                else:
                    raise ExpressionError(f"Invalid KeyConditionExpression: Syntax error; token: {sign!r}")
            if not self._accept("AND"):
                break
        self.end()

    def end(self) -> None:
        if self._place < len(self._tokens):
            raise ExpressionError(f"Invalid expression: Syntax error; token: {self._tokens[self._place]!r}")

    def _path(self) -> Path:
        parts: list[str | int] = [self._name()]
        while True:
            if self._accept("."):
                parts.append(self._name())
            elif self._accept("["):
                parts.append(int(self._next()))
                self._expect("]")
            else:
                return tuple(parts)

    def _name(self) -> str:
        word = self._next()
        if word.startswith("#"):
            self._request.used.add(word)
            if word not in self._request.names:
                raise ExpressionError(f"An expression attribute name used in the document path is not defined: {word}")
            return self._request.names[word]
        if not (word[0].isalpha() or word[0] == "_"):
            raise ExpressionError(f"Invalid expression: Syntax error; token: {word!r}")
        if word.upper() in _RESERVED:
            raise ExpressionError(f"Invalid expression: Attribute name is a reserved keyword; reserved keyword: {word}")
        return word

    def _value(self, kinds: tuple[str, ...] = ()) -> Value:
        word = self._next()
        if not word.startswith(":"):
            raise ExpressionError(f"Invalid expression: Syntax error; token: {word!r}")
        self._request.used.add(word)
        if word not in self._request.values:
            raise ExpressionError(f"An expression attribute value used in expression is not defined: {word}")
        value = self._request.values[word]
        if kinds and kind_of(value) not in kinds:
            raise ExpressionError(f"Incorrect operand type for operator or function: {kind_of(value)}")
        return value

    def _peek(self, ahead: int = 0) -> str | None:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _next(self) -> str:
        if self._place >= len(self._tokens):
            raise ExpressionError("Invalid expression: Syntax error; token: <EOF>")
        self._place += 1
        return self._tokens[self._place - 1]

    def _accept(self, word: str) -> bool:
        found = self._peek()
        if found is None or found.upper() != word:
            return False
        self._place += 1
        return True

    def _expect(self, word: str) -> None:
        found = self._next()
        if found.upper() != word:
            raise ExpressionError(f"Invalid expression: Syntax error; token: {found!r}, not {word!r}")


def kind_of(value: Value) -> str:
    """The type descriptor, such as S, N or B."""
    if len(value) != 1:
        raise ExpressionError("Supplied AttributeValue has more than one or no datatypes set")
    return next(iter(value))


def plain(value: Value) -> Any:
    """A value that compares as DynamoDB's do, among those of its type."""
    kind = kind_of(value)
    content = value[kind]
    match kind:
        case "N":
            return Decimal(content)
        case "NS":
            return frozenset(map(Decimal, content))
        case "SS" | "BS":
            return frozenset(content)
        case "L":
            return [(kind_of(one), plain(one)) for one in content]
        case "M":
            return {name: (kind_of(one), plain(one)) for name, one in content.items()}
        case _:
            return content


def lookup(item: Item, path: Path) -> Value | None:
    """What an item has at a path."""
    found: Value | None = item.get(str(path[0]))
    for part in path[1:]:
        if found is None:
            return None
        if isinstance(part, int):
            members = found.get("L", [])
            found = members[part] if part < len(members) else None
        else:
            found = found.get("M", {}).get(part)
    return found


def _compared(sign: str, left: Value | None, right: Value | None) -> bool:
    if left is None or right is None:
        return False
    if kind_of(left) != kind_of(right):
        return sign == "<>"
    if sign not in ("=", "<>") and kind_of(left) not in ("S", "N", "B"):
        raise ExpressionError(f"Incorrect operand type for operator or function; operator: {sign}")
    return _COMPARISONS[sign](plain(left), plain(right))


def _begins_with(value: Value | None, start: Value | None) -> bool:
    if value is None or start is None or kind_of(value) != kind_of(start):
        return False
    return bool(plain(value).startswith(plain(start)))


def _contains(value: Value | None, member: Value | None) -> bool:
    if value is None or member is None:
        return False
    kind = kind_of(value)
    if kind == "L":
        return (kind_of(member), plain(member)) in plain(value)
    if kind == "S":
        return kind_of(member) == "S" and member["S"] in value["S"]
    return kind == kind_of(member) + "S" and plain(member) in plain(value)


def _size(value: Value | None) -> Value | None:
    return None if value is None else {"N": str(len(plain(value)))}


def _required(value: Value | None) -> Value:
    if value is None:
        raise ExpressionError("The provided expression refers to an attribute that does not exist in the item")
    return value


def _arithmetic(sign: str, left: Value | None, right: Value | None) -> Value:
    one, other = Decimal(_required(left)["N"]), Decimal(_required(right)["N"])
    return {"N": str(one + other if sign == "+" else one - other)}


def _added(present: Value | None, value: Value) -> Value:
    kind = kind_of(value)
    if present is None:
        return value
    if kind_of(present) != kind:
        raise ExpressionError("An operand in the update expression has an incorrect data type")
    if kind == "N":
        return {"N": str(Decimal(present["N"]) + Decimal(value["N"]))}
    return {kind: list(dict.fromkeys([*present[kind], *value[kind]]))}


def _taken(present: Value | None, value: Value) -> Value | None:
    kind = kind_of(value)
    if present is None:
        return None
    if kind_of(present) != kind:
        raise ExpressionError("An operand in the update expression has an incorrect data type")
    left = [one for one in present[kind] if one not in value[kind]]
    return {kind: left} if left else None


def _assign(item: dict[str, Any], path: Path, value: Value) -> None:
    holder, last = _holder(item, path)
    if isinstance(last, int):
        if last < len(holder):
            holder[last] = value
        else:
            holder.append(value)
    else:
        holder[last] = value


def _remove(item: dict[str, Any], path: Path) -> None:
    try:
        holder, last = _holder(item, path)
    except ExpressionError:
        return
    if isinstance(last, int):
        if last < len(holder):
            del holder[last]
    else:
        holder.pop(last, None)


def _holder(item: dict[str, Any], path: Path) -> tuple[Any, str | int]:
    holder: Any = item
    for number, part in enumerate(path[:-1]):
        inner = "L" if isinstance(path[number + 1], int) else "M"
        try:
            holder = holder[part][inner]
        except (KeyError, IndexError, TypeError):
            raise ExpressionError("The document path provided in the update expression is invalid for update") from None
    return holder, path[-1]


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value
