"""`find_model`: what a model's name or path means, decided once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covp.base.request import DEFAULT_BUILD, BuildOptions, Shapes
from covp.errors import UsageError
from covp.graph import zoo
from covp.graph.graph import Graph, Origin
from covp.graph.passes.bind_states import bind_states
from covp.graph.readers import read_model
from covp.graph.zoo.catalog import CATALOG


@dataclass(frozen=True)
class ModelFile:
    """A model file and where it comes from.

    Attributes:
        name: the name in the zoo, or the file's stem.
        path: the file.
        source: "official", "custom" or "synthetic" for models of the zoo (see
            `covp.graph.zoo.ZooModel`), "file" for one given by its path.
    """

    name: str
    path: Path
    source: str

    def load(self, shapes: Shapes | None = None) -> Graph:
        """Read the file; the graph knows its source, a zoo model's graph has the zoo's name.

        Args:
            shapes: of inputs by name, for those that the file leaves open.

        Raises:
            ModelError: the file is missing, damaged or not supported; one line.
        """
        graph = read_model(self.path, shapes)
        graph.source = self.source
        graph.origin = Origin(self.path, shapes or {})
        if self.source != "file":
            graph.name = self.name
        return graph


def find_model(spec: str | Path) -> ModelFile:
    """Return the file of a path or of a zoo name. A file wins over a zoo name, a folder does not.

    Args:
        spec: a path, or a name of `covp.graph.zoo.names`. What has a suffix or a folder is a path,
            whether or not the file exists.

    Raises:
        UsageError: neither a file nor a name of the zoo; the text suggests near misses.
    """
    if not isinstance(spec, str | Path):
        raise UsageError(f"a model is its name in the zoo or a path, not {spec!r:.80}")
    path = Path(spec)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{spec}: cannot be read as a model: {reason}") from None
    is_path = path.suffix or len(path.parts) > 1
    # a folder is no model, but the error that says so names it; a zoo model's name goes first
    if path.is_file() or is_path or (path.is_dir() and str(spec) not in CATALOG):
        return ModelFile(path.stem, path, "file")
    found = zoo.find(str(spec))
    return ModelFile(found.name, found.path, found.source)


def load_model(spec: str | Path, shapes: Shapes | None = None) -> Graph:
    """Return a graph from a model file or the name of a zoo model.

    Args:
        spec: as for `find_model`.
        shapes: of inputs by name, for those that an ONNX file leaves open.

    Raises:
        UsageError: neither a file nor a name of the zoo; shapes for a file that states its own.
        ModelError: the file cannot be read; one line.
    """
    return find_model(spec).load(shapes)


def as_graph(
    model: Graph | str | Path,
    options: BuildOptions = DEFAULT_BUILD,
) -> Graph:
    """Return a graph as it is; else `load_model`; then as one with states where that is wanted.

    Args:
        model: a graph, a zoo name or the path of a model file.
        options: ``shapes`` as for `load_model`, ``states`` as for
            `covp.graph.passes.bind_states.bind_states`, ``streaming`` as for
            `covp.graph.passes.streaming.as_streaming`; 0 leaves the network on whole windows.

    Raises:
        UsageError: shapes are given for a graph, whose shapes are known; states do not fit.
        ModelError: the network cannot run on a stream.
    """
    if options.shapes and isinstance(model, Graph):
        raise UsageError(f"shapes: those of the graph {model.name} are known; leave them out")
    graph = model if isinstance(model, Graph) else load_model(model, options.shapes)
    if options.states:
        graph = bind_states(graph, options.states)
    if not options.streaming:
        return graph
    from covp.graph.passes.streaming import as_streaming  # its rules know many operators

    return as_streaming(graph, int(options.streaming))
