"""`find_model`: what a model's name or path means; the readers are found by a file's suffix."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from covp.base.request import DEFAULT_BUILD, BuildOptions, Shapes
from covp.errors import ModelError, UsageError
from covp.graph import zoo
from covp.graph.graph import Graph, Origin
from covp.graph.passes.bind_states import bind_states
from covp.graph.zoo.catalog import CATALOG


def _tflite(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.tflite import load_tflite

    if shapes:
        raise UsageError(
            "the file states the shapes of its inputs; --shape is for ONNX", where=path
        )
    return load_tflite(path)


def _onnx(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.onnx import load_onnx

    return load_onnx(path, shapes)


READERS: dict[str, Callable[[Path, Shapes | None], Graph]] = {".tflite": _tflite, ".onnx": _onnx}
"""The reader of each lower-case suffix."""


_KERAS = "python -m tf2onnx.convert --keras {path} --output model.onnx"
_SAVED = "python -m tf2onnx.convert --saved-model {path} --output model.onnx"
_FROZEN = "python -m tf2onnx.convert --graphdef {path} --output model.onnx"
_TORCH = "torch.onnx.export(model, inputs, 'model.onnx')"
_SKLEARN = "onnx.save(skl2onnx.to_onnx(model, samples[:1]), 'model.onnx')"
_KERAS_FILE = ("a Keras model", f"export it: {_KERAS}")
_FOLDER = ("a SavedModel", f"export it: {_SAVED}")
_PICKLE = ("a pickle, which covp never loads", f"export it where the model is: {_SKLEARN}")
_TORCH_FILE = ("a PyTorch file", f"export it in the program that has the model: {_TORCH}")
_WEIGHTS = ("weights alone, no network", "save a model in the program that has it")
_KNOWN = {
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS_FILE),
    ".savedmodel": _FOLDER,
    ".pb": ("a frozen TensorFlow graph", f"export it: {_FROZEN} --inputs x:0 --outputs y:0"),
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ptl", ".pte", ".jit"), _TORCH_FILE),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".sav"), _PICKLE),
    **dict.fromkeys((".safetensors", ".ckpt", ".npz"), _WEIGHTS),
}
"""Lower-case suffix of what other programs save: what it is, and what makes a model file of it."""
_CONTENT = {
    b"\x89HDF": _KERAS_FILE,
    b"PK\x03\x04": ("an archive, as of PyTorch or Keras", f"export it: {_TORCH}, or {_KERAS}"),
    b"version https://git-lfs": ("a pointer of Git LFS, not the file", "fetch it: git lfs pull"),
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"), _PICKLE),
}
"""First bytes that identify files whose suffix is none of the above."""


def _foreign(path: Path) -> tuple[str, str] | None:
    """Return what another program's file is, and how it becomes a model file; or None."""
    if path.is_dir():
        return _FOLDER if (path / "saved_model.pb").exists() else None
    if path.suffix.lower() in _KNOWN and path.exists():
        return _KNOWN[path.suffix.lower()]
    start = b""
    if not path.is_file():  # a pipe would wait for its writer
        return None
    with contextlib.suppress(OSError), path.open("rb") as stream:  # the reader says why
        start = stream.read(32)
    return next((known for magic, known in _CONTENT.items() if start.startswith(magic)), None)


def read_model(path: Path, shapes: Shapes | None = None) -> Graph:
    """Return the graph in a model file; one of an unknown suffix is read as TFLite.

    Args:
        path: of the file.
        shapes: of inputs by name, for those that the file leaves open.

    Raises:
        UsageError: shapes are given and the file states its own.
        ModelError: the file cannot be read; one line.
    """
    if (foreign := _foreign(path)) is not None:
        what, how = foreign
        how = how.format(path=shlex.quote(str(path)))
        raise ModelError(f"{what}; covp reads .onnx and .tflite; {how}", where=path)
    return READERS.get(path.suffix.lower(), _tflite)(path, shapes)


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
    # a folder is not a model, but the error names it; a zoo model's name takes precedence
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
            `covp.graph.passes.streaming.make_streaming_graph`; 0 leaves it on whole windows.

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
    from covp.graph.passes.streaming import make_streaming_graph  # its rules know many operators

    return make_streaming_graph(graph, int(options.streaming))
