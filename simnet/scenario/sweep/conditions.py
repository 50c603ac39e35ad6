"""Conditions on the values of a point: ``training.workers * 2 <= 64 and protocol != 'tcp'``.

A small part of Python's expressions: comparisons, ``and``, ``or``, ``not``, ``in``, the four operations, numbers, texts
and lists, and the paths of keys. Nothing is called, and nothing but the values of the point is seen. Text that is a
quantity is compared as one: ``topology.star.bandwidth >= '25 Gbps'``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from simnet.errors import InputError, Problem
from simnet.scenario.fields import hint_at, shown
from simnet.units import UnitError, parse_bandwidth, parse_duration, parse_size

__all__ = ["Condition"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_DEEPEST = 30


class Condition:
    """A condition on a point.

    Parameters
    ----------
    text : str
    known : collection of str
        Paths of the keys whose values a point has.

    Raises
    ------
    InputError
        It is no condition, or names a key that no point has.
    """

    def __init__(self, text: str, known: Mapping[str, object]) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(Problem(f"{shown(text)} is no condition", _EXAMPLE)) from None
        self._check(self._tree, known, 0)

    def holds(self, point: Mapping[str, object]) -> bool:
        """Tell whether it holds for the values of a point, by path.

        Raises
        ------
        InputError
            Values that cannot be compared or computed with.
        """
        try:
            return bool(self._value(self._tree, point))
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise InputError(Problem(f"{shown(self.text)} cannot be told: {error}", _EXAMPLE)) from None

    def _check(self, node: ast.expr, known: Mapping[str, object], depth: int) -> None:
        if depth > _DEEPEST:
            raise InputError(Problem(f"{shown(self.text)} is too long", "several conditions may be given as a list"))
        match node:
            case ast.Name() | ast.Attribute():
                path = _path(node)
                if path not in known:
                    raise InputError(Problem(f"{shown(self.text)}: no point has {path!r}", hint_at(path, known)))
                return
            case ast.Constant(value=bool() | int() | float() | str()):
                return
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                below = parts
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=part):
                below = [part]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTE:
                below = [left, right]
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
                below = [left, *others]
            case _:
                what = ast.unparse(node)
                raise InputError(Problem(f"{shown(self.text)}: {shown(what)} cannot stand in a condition", _EXAMPLE))
        for part in below:
            self._check(part, known, depth + 1)

    def _value(self, node: ast.expr, point: Mapping[str, object]) -> Any:
        match node:
            case ast.Name() | ast.Attribute():
                return point[_path(node)]
            case ast.Constant(value=value):
                return value
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._value(part, point) for part in parts]
            case ast.BoolOp(op=op, values=parts):
                decide = all if isinstance(op, ast.And) else any
                return decide(self._value(part, point) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self._value(part, point)
            case ast.UnaryOp(operand=part):
                return -self._value(part, point)
            case ast.BinOp(left=left, op=compute, right=right):
                return _COMPUTE[type(compute)](self._value(left, point), self._value(right, point))
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self._value(part, point) for part in (left, *others)]
                return all(
                    _COMPARE[type(op)](*(map(_measured, pair) if isinstance(op, _ORDERED) else pair))
                    for op, *pair in zip(ops, values, values[1:], strict=False)
                )
        raise TypeError(f"{ast.unparse(node)} has no value")


def _path(node: ast.expr) -> str:
    """Return the path of a key that names stand for; other than names inside of it make none."""
    return ast.unparse(node)


def _measured(value: Any) -> Any:
    """Return a quantity in SI units; all else as it is."""
    if not isinstance(value, str):
        return value
    for parse in (parse_bandwidth, parse_size, parse_duration):
        try:
            return parse(value)
        except UnitError:
            continue
    return value


_EXAMPLE = "write it like training.workers <= 64, or protocol != 'tcp'"
