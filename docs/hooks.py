"""Hooks of the build of the site: README and notebooks as pages, API pages of whole packages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covp.base.dependencies import INSTALL
from covp.cli.main import covp

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_FOLDER = re.compile(r"(pip install (?!-e)(?:[\w=]+(?:\.\d+)* )*'?)(?:\.\.?/covp\b|\.(?![\w./]))")
"""What pip installs covp from on the pages: its folder, or one beside the reader's."""


WIDE = frozenset(
    {"boards.md", "getting-started.md", "onnx.md", "sweep.md", "tutorial-accelerator.md"}
)
"""Pages with wide output, which take the place of the table of contents beside them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make index.md of the README, and a page of each notebook in examples."""
    from mkdocs.structure.files import File

    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    text = re.sub(r"\]\(examples/([\w-]+)\.ipynb\)", r"](notebooks/\1.md)", text)
    files.append(File.generated(config, "index.md", content=text))
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        name = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, name, content=_notebook(notebook)))
    return files


def _notebook(path: Path) -> str:
    """The cells of a notebook in Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    forms = {"markdown": "{}", "code": "```python\n{}\n```"}
    return "\n\n".join(forms[cell["cell_type"]].format("".join(cell["source"])) for cell in cells)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Expand ``::: package.*`` to all its modules, ``::: commands`` to the help of every command.

    Links that leave the site become plain text, and covp is installed from where it is.
    """
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["toc"]
    markdown = install_from(INSTALL, markdown)
    markdown = re.sub(r"^::: ([\w.]+)\.\*$", _modules, markdown, flags=re.M)
    markdown = re.sub("^::: commands$", lambda _: "\n".join(sections(covp)), markdown, flags=re.M)
    if page.file.src_uri == "index.md":
        return re.sub(r"\[([^\]]+)\]\((?:examples|CONTRIBUTING)[^)]*\)", r"\1", markdown)
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", markdown)


def install_from(place: str, markdown: str) -> str:
    """The commands that install covp, from elsewhere than its folder.

    Args:
        place: what pip takes covp from; "." changes nothing.
        markdown: of a page.
    """
    return markdown if place == "." else _FOLDER.sub(rf"\g<1>{place}", markdown)


def _modules(found: re.Match[str]) -> str:
    """A directive for every public module of a package, in the order of their names."""
    folder = ROOT / found[1].replace(".", "/")
    names = sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))
    return "\n\n".join(f"::: {found[1]}.{name}" for name in names)


def sections(
    command: click.Command, name: str | None = None, parent: click.Context | None = None
) -> Iterator[str]:
    """A section with the output of ``--help``, then those of its subcommands.

    Args:
        command: which.
        name: that its group has for it, where that is not its own.
        parent: of the group.
    """
    context = click.Context(command, parent, name or command.name, max_content_width=76)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from sections(subcommand, name, context)
