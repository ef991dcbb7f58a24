"""`read_yaml`: YAML that people write by hand, without what makes a small file endless."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from covp.base.arguments import read_file
from covp.errors import CovpError

LONGEST = 1 << 16
"""Largest size of a file in bytes: thirty times that of the files that come with covp."""
MOST = 10_000
"""Most values of a document; an ``*alias`` counts its values at each place."""
_LONGEST_REASON = 300


def read_yaml(path: Path, error: type[CovpError], what: str = "file") -> Any:
    """Return the value of a file's document. It is read-only: the same content is parsed once.

    Args:
        path: of the file.
        error: raised for every mistake, with one line that begins with the path.
        what: is not there where the file is not, such as "platform file".
    """
    try:
        return _parse_once(read_file(path))
    except FileNotFoundError:
        raise error(f"{path}: no such {what}") from None
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: cannot be read: {wrong}") from None
    except OSError as wrong:
        raise error(f"{path}: cannot be read: {wrong.strerror or wrong}") from None
    except RecursionError:
        raise error(f"{path}: not valid YAML: nested too deeply") from None
    except Exception as wrong:
        # PyYAML's constructors raise anything: ValueError for "!!float x", KeyError for "!!bool x"
        name = "" if isinstance(wrong, yaml.YAMLError) else f"{type(wrong).__name__}: "
        reason = name + " ".join(str(wrong).split())[:_LONGEST_REASON]
        raise error(f"{path}: not valid YAML: {reason}") from None


def parse_yaml(content: bytes) -> Any:
    """Return the value of a document.

    Raises:
        yaml.YAMLError: it is none, is too large once its aliases are written out, or has a key
            twice in one mapping.
        UnicodeDecodeError: it is not UTF-8.
        RecursionError: nested too deeply.
        Exception: whatever else PyYAML's constructors raise.
    """
    if len(content) > LONGEST:
        raise yaml.YAMLError(f"{len(content)} bytes; at most {LONGEST} are allowed")
    return yaml.load(content.decode("utf-8"), _Loader)


_parse_once = functools.lru_cache(maxsize=64)(parse_yaml)
"""Cached parser: sweeps and test runs open many sessions with the same few files."""


class _Loader(yaml.SafeLoader):
    def compose_document(self) -> Any:
        node = super().compose_document()
        _extent(node, {})
        return node


def _extent(node: Any, known: dict[int, int]) -> int:
    """Count the values below a node; a node that holds itself is met again as endless."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MOST
    if isinstance(node, yaml.MappingNode):
        _demand_different(node)
        parts = [part for pair in node.value for part in pair]
    else:
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
    known[id(node)] = 1 + sum(_extent(part, known) for part in parts)
    if known[id(node)] > MOST:
        raise yaml.MarkedYAMLError(None, None, f"more than {MOST} values", node.start_mark)
    return known[id(node)]


def _demand_different(node: Any) -> None:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            raise yaml.MarkedYAMLError(None, None, f"key {key.value!r:.80} twice", key.start_mark)
        seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
