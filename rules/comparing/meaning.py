"""An expression in one form for all that means the same.

Matchers, labels in `by` and `on`, and the sides of `+` and `*` are put in order; parentheses
are dropped or added as the tree wants them; arithmetic on constants is done; numbers agree
within nine digits; a constant stands on the right of a comparison.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import promql_parser as promql

_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_MIRRORED: Final = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_COMMUTATIVE: Final = ("+", "*")


class UnreadableError(Exception):
    """An expression that is no PromQL."""


def canonical(expr: str) -> str:
    """Its one form. Raises UnreadableError where it can't be parsed."""
    return _text(_parsed(expr))


def labels_out(expr: str) -> tuple[str, ...] | None:
    """The labels that its samples carry, where the expression names them; None: it does not."""
    return _labels(_parsed(expr))


def matched(expr: str, label: str) -> set[str]:
    """The values that selectors of the expression ask of a label, alternatives apart."""
    found: set[str] = set()

    def visit(node: Any) -> bool:
        if isinstance(node, promql.VectorSelector):
            for matcher in node.matchers.matchers:
                if matcher.name == label:
                    found.update(matcher.value.split("|"))
        return True

    promql.walk(_parsed(expr), visit)
    return found


def _parsed(expr: str) -> Any:
    try:
        return promql.parse(expr)
    except ValueError as error:
        raise UnreadableError(str(error).strip()) from None


def _text(node: Any) -> str:
    value = _constant(node)
    if value is not None:
        return _number(value)
    return _WRITERS[type(node)](node)


def _constant(node: Any) -> float | None:
    """The value of arithmetic on numbers; None for all else."""
    if isinstance(node, promql.ParenExpr):
        return _constant(node.expr)
    if isinstance(node, promql.NumberLiteral):
        return float(node.val)
    if isinstance(node, promql.UnaryExpr):
        value = _constant(node.expr)
        return None if value is None else -value
    if isinstance(node, promql.BinaryExpr) and str(node.op) in _ARITHMETIC:
        left, right = _constant(node.lhs), _constant(node.rhs)
        if left is None or right is None or (str(node.op) == "/" and right == 0):
            return None
        return _ARITHMETIC[str(node.op)](left, right)
    return None


def _number(value: float) -> str:
    return f"{value:.9g}"


def _binary(node: Any) -> str:
    op, modifier = str(node.op), node.modifier
    left, right = _text(node.lhs), _text(node.rhs)
    if op in _MIRRORED and _constant(node.lhs) is not None and _constant(node.rhs) is None:
        left, right, op = right, left, _MIRRORED[op]
    elif op in _COMMUTATIVE and (modifier is None or not modifier.group_labels):
        left, right = sorted((left, right))
    return f"({left} {op}{_modifier(modifier)} {right})"


def _modifier(modifier: Any) -> str:
    if modifier is None:
        return ""
    parts = " bool" if modifier.return_bool else ""
    if modifier.matching is not None:
        is_on = modifier.matching.type == promql.LabelModifierType.Include
        parts += f" {'on' if is_on else 'ignoring'} {_list(modifier.matching.labels)}"
    if modifier.card == promql.VectorMatchCardinality.ManyToOne:
        parts += f" group_left {_list(modifier.group_labels or ())}"
    elif modifier.card == promql.VectorMatchCardinality.OneToMany:
        parts += f" group_right {_list(modifier.group_labels or ())}"
    return parts


def _aggregate(node: Any) -> str:
    arguments = [_text(node.param)] if node.param is not None else []
    arguments.append(_text(node.expr))
    grouping = ""
    if node.modifier is not None:
        is_by = node.modifier.type == promql.AggModifierType.By
        grouping = f" {'by' if is_by else 'without'} {_list(node.modifier.labels)}"
        grouping = "" if grouping == " by ()" else grouping
    return f"{node.op}{grouping} ({', '.join(arguments)})"


def _selector(node: Any) -> str:
    matchers = sorted(str(matcher) for matcher in node.matchers.matchers)
    return f"{node.name or ''}{{{','.join(matchers)}}}{_moved(node)}"


def _range(node: Any) -> str:
    series = node.vector_selector
    matchers = sorted(str(matcher) for matcher in series.matchers.matchers)
    name = f"{series.name or ''}{{{','.join(matchers)}}}"
    return f"{name}[{node.range.total_seconds():g}s]{_moved(series)}"


def _subquery(node: Any) -> str:
    step = f"{node.step.total_seconds():g}s" if node.step is not None else ""
    return f"{_text(node.expr)}[{node.range.total_seconds():g}s:{step}]{_moved(node)}"


def _moved(node: Any) -> str:
    offset = f" offset {node.offset.total_seconds():g}s" if node.offset else ""
    return offset + (f" {node.at}" if node.at is not None else "")


def _list(labels: Iterable[str]) -> str:
    return f"({', '.join(sorted(labels))})"


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    promql.BinaryExpr: _binary,
    promql.AggregateExpr: _aggregate,
    promql.VectorSelector: _selector,
    promql.MatrixSelector: _range,
    promql.SubqueryExpr: _subquery,
    promql.ParenExpr: lambda node: _text(node.expr),
    promql.UnaryExpr: lambda node: f"-{_text(node.expr)}",
    promql.StringLiteral: lambda node: f'"{node.val}"',
    promql.Call: lambda node: f"{node.func.name}({', '.join(map(_text, node.args))})",
}


def _labels(node: Any) -> tuple[str, ...] | None:
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        is_by = node.modifier.type == promql.AggModifierType.By
        return tuple(sorted(node.modifier.labels)) if is_by else None
    if isinstance(node, promql.AggregateExpr):
        return ()
    if isinstance(node, promql.ParenExpr | promql.UnaryExpr):
        return _labels(node.expr)
    if isinstance(node, promql.BinaryExpr):
        side = node.rhs if _constant(node.lhs) is not None else node.lhs
        return _labels(side)
    return None
