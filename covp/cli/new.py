"""``covp new``: what a project of one's own starts from."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

from covp.accelerator.registry import built_in_names
from covp.base.temporary import temporary_folder
from covp.cli.output import echo
from covp.errors import UsageError

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


@click.group()
def new() -> None:
    """Create a project from a template."""


@new.command()
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to make; by default NAME.",
)
def accelerator(name: str, output: Path | None) -> None:
    """Write a working accelerator NAME: register map, model, tests, a pyproject."""
    if not _NAME.match(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be a name: lower case letters, digits and _, as in mac8")
    if name in built_in_names():
        raise UsageError(f"{name!r} is an accelerator of covp's own, which -a would find instead")
    target = output or Path(name)
    if target.exists():
        raise UsageError(f"{target} exists already; choose another folder with -o")
    words = {"@name@": name, "@Class@": "".join(part.capitalize() for part in name.split("_"))}
    write_template(_TEMPLATES / "accelerator", target, words)
    echo(f"{target} written; now: cd {target} && pip install -e '.[test]' && pytest")


def write_template(template: Path, target: Path, words: dict[str, str]) -> None:
    """Copy a folder of ``*.in`` files with words replaced in names and texts; all or nothing.

    Raises:
        UsageError: the folder cannot be written.
    """

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder("new", target.parent) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for file in template.iterdir():
                if file.name.endswith(".in"):
                    text = filled(file.read_text(encoding="utf-8"))
                    (made / filled(file.name.removesuffix(".in"))).write_text(text, "utf-8")
            made.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
