"""Parses the DynamoDB expressions that the mesh uses, as strictly as AWS; other syntax is an error."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from asya.testing.dynamo.values import (
    COMPARISONS,
    ExpressionError,
    Item,
    Path,
    Value,
    add,
    arithmetic,
    assign,
    begins_with,
    compare,
    contains,
    copied_value,
    kind_of,
    lookup,
    remove,
    required,
    size,
    subtract,
)

_TEXT = """
ABORT ABSOLUTE ACTION ADD AFTER AGENT AGGREGATE ALL ALLOCATE ALTER ANALYZE AND ANY ARCHIVE ARE ARRAY AS ASC ASCII
ASENSITIVE ASSERTION ASYMMETRIC AT ATOMIC ATTACH ATTRIBUTE AUTH AUTHORIZATION AUTHORIZE AUTO AVG BACK BACKUP BASE BATCH
BEFORE BEGIN BETWEEN BIGINT BINARY BIT BLOB BLOCK BOOLEAN BOTH BREADTH BUCKET BULK BY BYTE CALL CALLED CALLING CAPACITY
CASCADE CASCADED CASE CAST CATALOG CHAR CHARACTER CHECK CLASS CLOB CLOSE CLUSTER CLUSTERED CLUSTERING CLUSTERS COALESCE
COLLATE COLLATION COLLECTION COLUMN COLUMNS COMBINE COMMENT COMMIT COMPACT COMPILE COMPRESS CONDITION CONFLICT CONNECT
CONNECTION CONSISTENCY CONSISTENT CONSTRAINT CONSTRAINTS CONSTRUCTOR CONSUMED CONTINUE CONVERT COPY CORRESPONDING COUNT
COUNTER CREATE CROSS CUBE CURRENT CURSOR CYCLE DATA DATABASE DATE DATETIME DAY DEALLOCATE DEC DECIMAL DECLARE DEFAULT
DEFERRABLE DEFERRED DEFINE DEFINED DEFINITION DELETE DELIMITED DEPTH DEREF DESC DESCRIBE DESCRIPTOR DETACH DETERMINISTIC
DIAGNOSTICS DIRECTORIES DISABLE DISCONNECT DISTINCT DISTRIBUTE DO DOMAIN DOUBLE DROP DUMP DURATION DYNAMIC EACH ELEMENT
ELSE ELSEIF EMPTY ENABLE END EQUAL EQUALS ERROR ESCAPE ESCAPED EVAL EVALUATE EXCEEDED EXCEPT EXCEPTION EXCEPTIONS
EXCLUSIVE EXEC EXECUTE EXISTS EXIT EXPLAIN EXPLODE EXPORT EXPRESSION EXTENDED EXTERNAL EXTRACT FAIL FALSE FAMILY FETCH
FIELDS FILE FILTER FILTERING FINAL FINISH FIRST FIXED FLATTERN FLOAT FOR FORCE FOREIGN FORMAT FORWARD FOUND FREE FROM
FULL FUNCTION FUNCTIONS GENERAL GENERATE GET GLOB GLOBAL GO GOTO GRANT GREATER GROUP GROUPING HANDLER HASH HAVE HAVING
HEAP HIDDEN HOLD HOUR IDENTIFIED IDENTITY IF IGNORE IMMEDIATE IMPORT IN INCLUDING INCLUSIVE INCREMENT INCREMENTAL INDEX
INDEXED INDEXES INDICATOR INFINITE INITIALLY INLINE INNER INNTER INOUT INPUT INSENSITIVE INSERT INSTEAD INT INTEGER
INTERSECT INTERVAL INTO INVALIDATE IS ISOLATION ITEM ITEMS ITERATE JOIN KEY KEYS LAG LANGUAGE LARGE LAST LATERAL LEAD
LEADING LEAVE LEFT LENGTH LESS LEVEL LIKE LIMIT LIMITED LINES LIST LOAD LOCAL LOCALTIME LOCALTIMESTAMP LOCATION LOCATOR
LOCK LOCKS LOG LOGED LONG LOOP LOWER MAP MATCH MATERIALIZED MAX MAXLEN MEMBER MERGE METHOD METRICS MIN MINUS MINUTE
MISSING MOD MODE MODIFIES MODIFY MODULE MONTH MULTI MULTISET NAME NAMES NATIONAL NATURAL NCHAR NCLOB NEW NEXT NO NONE
NOT NULL NULLIF NUMBER NUMERIC OBJECT OF OFFLINE OFFSET OLD ON ONLINE ONLY OPAQUE OPEN OPERATOR OPTION OR ORDER
ORDINALITY OTHER OTHERS OUT OUTER OUTPUT OVER OVERLAPS OVERRIDE OWNER PAD PARALLEL PARAMETER PARAMETERS PARTIAL
PARTITION PARTITIONED PARTITIONS PATH PERCENT PERCENTILE PERMISSION PERMISSIONS PIPE PIPELINED PLAN POOL POSITION
PRECISION PREPARE PRESERVE PRIMARY PRIOR PRIVATE PRIVILEGES PROCEDURE PROCESSED PROJECT PROJECTION PROPERTY PROVISIONING
PUBLIC PUT QUERY QUIT QUORUM RAISE RANDOM RANGE RANK RAW READ READS REAL REBUILD RECORD RECURSIVE REDUCE REF REFERENCE
REFERENCES REFERENCING REGEXP REGION REINDEX RELATIVE RELEASE REMAINDER RENAME REPEAT REPLACE REQUEST RESET RESIGNAL
RESOURCE RESPONSE RESTORE RESTRICT RESULT RETURN RETURNING RETURNS REVERSE REVOKE RIGHT ROLE ROLES ROLLBACK ROLLUP
ROUTINE ROW ROWS RULE RULES SAMPLE SATISFIES SAVE SAVEPOINT SCAN SCHEMA SCOPE SCROLL SEARCH SECOND SECTION SEGMENT
SEGMENTS SELECT SELF SEMI SENSITIVE SEPARATE SEQUENCE SERIALIZABLE SESSION SET SETS SHARD SHARE SHARED SHORT SHOW SIGNAL
SIMILAR SIZE SKEWED SMALLINT SNAPSHOT SOME SOURCE SPACE SPACES SPARSE SPECIFIC SPECIFICTYPE SPLIT SQL SQLCODE SQLERROR
SQLEXCEPTION SQLSTATE SQLWARNING START STATE STATIC STATUS STORAGE STORE STORED STREAM STRING STRUCT STYLE SUB
SUBMULTISET SUBPARTITION SUBSTRING SUBTYPE SUM SUPER SYMMETRIC SYNONYM SYSTEM TABLE TABLESAMPLE TEMP TEMPORARY
TERMINATED TEXT THAN THEN THROUGHPUT TIME TIMESTAMP TIMEZONE TINYINT TO TOKEN TOTAL TOUCH TRAILING TRANSACTION TRANSFORM
TRANSLATE TRANSLATION TREAT TRIGGER TRIM TRUE TRUNCATE TTL TUPLE TYPE UNDER UNDO UNION UNIQUE UNIT UNKNOWN UNLOGGED
UNNEST UNPROCESSED UNSIGNED UNTIL UPDATE UPPER URL USAGE USE USER USERS USING UUID VACUUM VALUE VALUED VALUES VARCHAR
VARIABLE VARIANCE VARINT VARYING VIEW VIEWS VIRTUAL VOID WAIT WHEN WHENEVER WHERE WHILE WINDOW WITH WITHIN WITHOUT WORK
WRAPPED WRITE YEAR ZONE
"""

RESERVED_WORDS = frozenset(_TEXT.split())


Condition = Callable[[Item], bool]
Operand = Callable[[Item], Value | None]

_TOKEN = re.compile(r"\s*(?:(?P<word>[#:]?[A-Za-z_][\w]*|[#:]\w+)|(?P<number>\d+)|(?P<sign><>|<=|>=|[=<>(),.\[\]+-]))")
_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[str, ...]:
    tokens: list[str] = []
    place = 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(f"Invalid expression: Syntax error near {text[place : place + 10]!r}")
        tokens.append(match[0].strip())
        place = match.end()
    return tuple(tokens)


@dataclass
class Request:
    """The names and values of one request; its expressions must use each of them."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def condition(self, text: str) -> Condition:
        """Parse a condition."""
        parser = _Parser(text, self)
        condition = parser.condition()
        parser.end()
        return condition

    def update(self, text: str) -> "Update":
        """Parse an update."""
        return _Parser(text, self).update()

    def key_condition(self, text: str) -> list[tuple[str, str, list[Value]]]:
        """Parse a key condition into attributes, comparisons and operands."""
        return list(_Parser(text, self).key_conditions())

    def check_all_used(self) -> None:
        """Raise an error for names or values that no expression uses."""
        for kind, entries in (("Names", self.names), ("Values", self.values)):
            unused = sorted(set(entries) - self.used)
            if unused:
                raise ExpressionError(
                    f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{', '.join(unused)}}}"
                )


@dataclass
class Update:
    """A parsed update: its clauses by document path."""

    sets: list[tuple[Path, Operand]] = field(default_factory=list)
    removes: list[Path] = field(default_factory=list)
    adds: list[tuple[Path, Value]] = field(default_factory=list)
    deletes: list[tuple[Path, Value]] = field(default_factory=list)

    @property
    def paths(self) -> list[Path]:
        """All paths that the update changes."""
        return [
            *(path for path, _ in self.sets),
            *self.removes,
            *(path for path, _ in self.adds),
            *(path for path, _ in self.deletes),
        ]

    def check(self) -> None:
        """Raise an error for overlapping paths."""
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
        """Return the updated item; each right-hand side reads the item before the update."""
        computed = [(path, required(operand(item))) for path, operand in self.sets]
        after: dict[str, Any] = {name: copied_value(value) for name, value in item.items()}
        for path, value in computed:
            assign(after, path, value)
        for path, value in self.adds:
            assign(after, path, add(lookup(item, path), value))
        for path, value in self.deletes:
            left = subtract(lookup(item, path), value)
            if left is None:
                remove(after, path)
            else:
                assign(after, path, left)
        for path in sorted(self.removes, key=str, reverse=True):
            remove(after, path)
        return after


class _Parser:
    """A recursive descent parser; it returns functions of the item."""

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
            operand = self._operand()
            self._expect(")")
            test = begins_with if function == "begins_with" else contains
            return lambda item: test(lookup(item, path), operand(item))
        left = self._operand()
        if self._accept("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            high = self._operand()
            return lambda item: compare(">=", left(item), low(item)) and compare("<=", left(item), high(item))
        if self._accept("IN"):
            self._expect("(")
            options = [self._operand()]
            while self._accept(","):
                options.append(self._operand())
            self._expect(")")
            return lambda item: any(compare("=", left(item), option(item)) for option in options)
        sign = self._next()
        if sign not in COMPARISONS:
            raise ExpressionError(f"Invalid expression: Syntax error; token: {sign!r}")
        right = self._operand()
        return lambda item: compare(sign, left(item), right(item))

    def update(self) -> Update:
        update = Update()
        clauses: set[str] = set()
        while self._place < len(self._tokens):
            clause = self._next().upper()
            if clause not in _CLAUSES or clause in clauses:
                raise ExpressionError(f"Invalid UpdateExpression: Syntax error; token: {clause!r}")
            clauses.add(clause)
            while True:
                self._action(clause, update)
                if not self._accept(","):
                    break
        if not clauses:
            raise ExpressionError("Invalid UpdateExpression: The expression can not be empty;")
        update.check()
        return update

    def _action(self, clause: str, update: Update) -> None:
        path = self._path()
        match clause:
            case "SET":
                self._expect("=")
                update.sets.append((path, self._sum()))
            case "REMOVE":
                update.removes.append(path)
            case "ADD":
                update.adds.append((path, self._value(("N", "NS", "SS", "BS"))))
            case _:
                update.deletes.append((path, self._value(("NS", "SS", "BS"))))

    def _sum(self) -> Operand:
        left = self._operand()
        if self._peek() in ("+", "-"):
            sign = self._next()
            right = self._operand()
            return lambda item: arithmetic(sign, left(item), right(item))
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
            return lambda item: size(lookup(item, sized))
        if name == "if_not_exists":
            path = self._path()
            self._expect(",")
            default = self._sum()
            self._expect(")")
            return lambda item: default(item) if (value := lookup(item, path)) is None else value
        first = self._operand()
        self._expect(",")
        second = self._operand()
        self._expect(")")
        return lambda item: {"L": [*required(first(item))["L"], *required(second(item))["L"]]}

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
                elif sign in COMPARISONS and sign != "<>":
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
        if word.upper() in RESERVED_WORDS:
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
        token = self._peek()
        if token is None or token.upper() != word:
            return False
        self._place += 1
        return True

    def _expect(self, word: str) -> None:
        token = self._next()
        if token.upper() != word:
            raise ExpressionError(f"Invalid expression: Syntax error; token: {token!r}, not {word!r}")
