"""``--junit FILE``: verdicts as JUnit's XML, which continuous integration services show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from covp.cli.groups import option
from covp.errors import UsageError, printable

junit: Callable[[Callable[..., Any]], Callable[..., Any]] = option(
    "--junit",
    type=Path,
    metavar="FILE",
    heading="Report",
    help="The verdicts as JUnit's XML too.",
)


@dataclass(frozen=True)
class TestCase:
    """One verdict.

    Attributes:
        name: of what was tried.
        problem: why it failed, in a line; empty where it passed.
        detail: more of it, in any number of lines.
    """

    name: str
    problem: str = ""
    detail: str = ""


def write_junit(path: Path, suite: str, cases: Sequence[TestCase]) -> None:
    """Write one test suite, in the form that Jenkins' xUnit plug-in and GitLab read.

    Raises:
        UsageError: the file cannot be written.
    """
    failed = sum(bool(case.problem) for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuite", {"name": suite, **counts})
    for case in cases:
        one = ElementTree.SubElement(root, "testcase", classname=suite, name=printable(case.name))
        if case.problem:
            failure = ElementTree.SubElement(one, "failure", message=printable(case.problem))
            failure.text = "\n".join(map(printable, (case.detail or case.problem).split("\n")))
    content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    try:
        path.write_bytes(content + b"\n")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", where=path) from None
