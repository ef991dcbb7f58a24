"""Decisions: the branches that short-circuit evaluation makes of ``a && (b || c)``, put together.

Each condition that is evaluated is a branch of its own. It leads to the next condition or to one of
the two outcomes, so a decision is a graph of branches that is left to exactly two places.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from covp.laboratory.coverage.code_map import CodeMap, Place
from covp.laboratory.coverage.files import Condition
from covp.laboratory.coverage.instructions import DecodedInstruction

_LONGEST = 64
"""Instructions between two conditions of a decision, calls left out."""
Exit = int | tuple[str, int, int, int]
"""An address, or file, line, column and the bits of the first instruction."""
_JOINS = re.compile(r"&&|\|\|")
_NEVER_INSIDE = re.compile(r"[;{}?]|\b(if|else|while|for|return|switch|case)\b")


def find_decisions(
    code: CodeMap, branches: Sequence[DecodedInstruction]
) -> tuple[tuple[Condition, ...], ...]:
    """Find the decisions with more than one condition.

    Branches belong together where one leads to the other, all are left to two places, and the
    source has ``&&`` or ``||`` and no statement between them; without the source, where they are on
    the same line.

    Args:
        code: of the ELF file.
        branches: conditional branches and IT blocks of one copy of a function, by address.
    """
    numbers = {step.address: number for number, step in enumerate(branches)}
    used: set[int] = set()
    found = []
    for step in branches:
        if step.address not in used and step.kind == "branch":
            nodes = _decision(code, step, numbers, used)
            if len(nodes) > 1:
                used.update(nodes)
                found.append(_as_data(code, nodes, numbers))
    return tuple(found)


def _decision(
    code: CodeMap, root: DecodedInstruction, numbers: Mapping[int, int], used: set[int]
) -> list[int]:
    """Find the addresses of a decision's conditions, in the order in which they are reached."""
    nodes = [root.address]
    for address in nodes:  # it grows
        for target in _ways(code.steps[address]):
            reached = _find_next(code, address, target, numbers)
            if reached is None or reached in used or reached in nodes:
                continue
            if _is_one_expression(code, address, reached) and _stays(code, address, target):
                nodes.append(reached)
    while len(nodes) > 1 and not _decides(code, nodes):
        nodes.pop()
    return sorted(nodes)


def _decides(code: CodeMap, nodes: Sequence[int]) -> bool:
    """Return whether the branches have two exits in all, and each leads two ways."""
    if len(_exits(code, nodes)) != 2:
        return False
    ways = [[_leads(code, node, way, nodes) for way in _ways(code.steps[node])] for node in nodes]
    return all(taken != untaken for taken, untaken in ways)


def _leads(code: CodeMap, node: int, way: int, nodes: Container[int]) -> int | Exit:
    """Return the branch of ``nodes``, or the exit, that a way leads to."""
    reached = _find_next(code, node, way, nodes)
    return _exit(code, way) if reached is None else reached


def _ways(step: DecodedInstruction) -> tuple[int, int]:
    """Return where a branch leads when it is taken, and when not."""
    assert step.target is not None
    return step.target, step.end


def _find_next(code: CodeMap, node: int, way: int, nodes: Container[int]) -> int | None:
    """Return the branch of ``nodes`` that comes next, at a higher address, or None."""
    reached = _next_branch(code, way)
    return reached if reached is not None and reached in nodes and reached > node else None


def _exits(code: CodeMap, nodes: Sequence[int]) -> list[Exit]:
    """Return the places outside ``nodes`` that the branches lead to."""
    ways = ((node, way) for node in nodes for way in _ways(code.steps[node]))
    left = {_exit(code, way) for node, way in ways if _find_next(code, node, way, nodes) is None}
    return sorted(left, key=str)


def _as_data(
    code: CodeMap, nodes: Sequence[int], numbers: Mapping[int, int]
) -> tuple[Condition, ...]:
    exits = _exits(code, nodes)

    def leads(node: int, way: int) -> int:
        reached = _find_next(code, node, way, nodes)
        return -1 - exits.index(_exit(code, way)) if reached is None else nodes.index(reached)

    return tuple(
        Condition(numbers[node], *(leads(node, way) for way in _ways(code.steps[node])))
        for node in nodes
    )


def _next_branch(code: CodeMap, address: int) -> int | None:
    """Find the first branch that is reached from an address."""
    for step in _path(code, address):
        if step.kind == "branch":
            return step.address
    return None


def _exit(code: CodeMap, address: int) -> Exit:
    """Follow the jumps at an address to an exit; copies of the same code are the same exit."""
    for step in _path(code, address):
        if step.kind != "jump":
            place = code.places.get(step.address)
            return (*place, step.bits) if place is not None and place[1] else step.address
    return address


def _path(code: CodeMap, address: int) -> Iterator[DecodedInstruction]:
    """Yield the instructions that run from an address on, up to where it is not known."""
    for _ in range(_LONGEST):
        step = code.steps.get(address)
        if step is None:
            return
        yield step
        if step.kind in ("branch", "leave") or (step.conditional and step.kind == "jump"):
            return
        address = step.target if step.kind == "jump" and step.target is not None else step.end


# -- the source ------------------------------------------------------------------------------------


def _is_one_expression(code: CodeMap, one: int, other: int) -> bool:
    first, last = sorted(code.places.get(at, ("", 0, 0)) for at in (one, other))
    if first[0] != last[0] or not first[1]:
        return False
    between = _text(first, last)
    if between is None:
        return first[1] == last[1]
    if first == last:
        return bool(_JOINS.search((source_lines(first[0]) or ())[first[1] - 1]))
    inside = re.sub(r"^\w+", "", between)  # a branch may be placed at the word of its statement
    return bool(_JOINS.search(between)) and not _NEVER_INSIDE.search(inside)


def _stays(code: CodeMap, branch: int, way: int) -> bool:
    """Return whether only code of the same expression runs from a branch to the next one."""
    file, first, _ = code.places[branch]
    steps = list(_path(code, way))
    last = code.places[steps[-1].address][1]
    places = [code.places.get(step.address, ("", 0, 0)) for step in steps]
    lines = {line for where, line, _ in places if where == file and line}
    return min(first, last) <= min(lines) and max(lines) <= max(first, last)


def _text(first: Place, last: Place) -> str | None:
    """Return the source from one place to another, with the operator there, without comments."""
    lines = source_lines(first[0])
    if lines is None or last[1] > len(lines) or not first[2] or not last[2]:
        return None
    text = "\n".join(lines[first[1] - 1 : last[1]])
    end = len(text) - len(lines[last[1] - 1]) + last[2] + 1
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text[first[2] - 1 : end], flags=re.S)


@functools.lru_cache(maxsize=256)
def source_lines(path: str) -> tuple[str, ...] | None:
    """Return the lines of a source file; None where it cannot be read."""
    try:
        return tuple(Path(path).read_text(encoding="utf-8", errors="replace").split("\n"))
    except OSError:
        return None
