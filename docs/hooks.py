"""Hooks of the build of the site: README and notebooks as pages, API pages of whole packages."""

from __future__ import annotations

import base64
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@functools.cache
def _executed(path: Path, text: str) -> list[dict[str, Any]]:
    """The cells of a notebook after it has been executed, once for each text."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.reads(text, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=300, resources={"metadata": {"path": path.parent}}
    )
    places = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))})
    return list(notebook["cells"])


def _notebook(path: Path) -> str:
    """The cells of a notebook in Markdown, with what they show."""
    parts = []
    for cell in _executed(path, path.read_text(encoding="utf-8")):
        code = cell["cell_type"] == "code"
        parts.append(f"```python\n{cell['source']}\n```" if code else cell["source"])
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join(filter(None, parts))


def _output(output: dict[str, Any]) -> str:
    """An output of a cell: a picture if it has one, else HTML, else text."""
    shown = output.get("data") or {"text/plain": output.get("text", "")}
    for kind in ("image/svg+xml", "image/png"):
        if kind in shown:
            data = shown[kind] if kind.endswith("png") else _base64(shown[kind])
            return f'<p><img class="plot" alt="Output: a plot" src="data:{kind};base64,{data}"></p>'
    if "text/html" in shown:
        lines = [line for line in shown["text/html"].splitlines() if line.strip()]
        return '<div class="output">\n' + "\n".join(lines) + "\n</div>"
    text = shown["text/plain"].rstrip("\n")
    return "" if text.startswith("RendererRegistry") else f"```text\n{text}\n```"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


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
