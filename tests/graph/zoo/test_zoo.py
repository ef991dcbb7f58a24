"""The zoo: where a model comes from, downloads by hash, stand-ins of the same topology."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from covp.errors import CovpError, UsageError
from covp.graph import zoo
from covp.graph.models import load_model
from covp.graph.ops import definition
from covp.graph.reference import run_reference
from covp.graph.zoo.catalog import CATALOG
from covp.graph.zoo.synthetic import INPUT_QUANTIZATION, synthetic_graph
from covp.graph.zoo.tflite_writer import write_tflite

ALL = [*zoo.names(more=True), *zoo.names("float32", more=True)]
OFFICIAL = [name for name in ALL if not CATALOG[name].is_synthetic_only]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no official file; the folder of its downloads."""
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def test_names() -> None:
    assert zoo.names() == ["resnet", "kws", "vww", "toycar", "sww", "cifar10"]
    assert zoo.names("float32") == ["resnet_float", "kws_float", "vww_float", "toycar_float"]


def test_more_names() -> None:
    more = set(zoo.names(more=True)) - set(zoo.names())
    assert more == {"resnet_large", "micro_kws_m", "person_detect", "mnist_lstm", "dtln", "rnnoise"}
    assert set(zoo.names("float32", more=True)) - set(zoo.names("float32")) == {"mnist_lstm_float"}


def test_every_file_has_its_place_and_hash() -> None:
    """A repository at a commit, a hash of 64 digits, a name of its own."""
    entries = [entry for entry in CATALOG.values() if not entry.is_synthetic_only]
    for entry in entries:
        assert re.fullmatch(
            r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}(/[\w/]+)?",
            entry.base_url,
        )
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
    assert len({entry.file for entry in entries}) == len(entries)


def test_unknown_name() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'vw'.*did you mean vww"):
        zoo.find("vw")


@pytest.mark.parametrize("name", ALL)
def test_synthetic_models_have_the_stated_macs(name: str, alone: Path) -> None:
    found = zoo.find(name)
    graph = load_model(name)
    assert found.source == "synthetic"
    assert graph.inputs[0].dtype == np.dtype(found.dtype)
    assert sum(definition(op.kind).macs(op) for op in graph.ops) == found.macs


@pytest.mark.parametrize("name", ALL)
def test_synthetic_models_tell_inputs_apart(name: str) -> None:
    """Outputs differ between inputs and are not only the ends of the range."""
    graph = synthetic_graph(name)
    outputs = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = []
        for position, tensor in enumerate(graph.inputs):
            if tensor.dtype == np.int8:
                values.append(rng.integers(-128, 128, tensor.shape).astype(np.int8))
                continue
            scale, zero_point = INPUT_QUANTIZATION[name.removesuffix("_float")][position]
            stored = rng.integers(-128, 128, tensor.shape)
            values.append(((stored - zero_point) * scale).astype(np.float32))
        outputs.append(run_reference(graph, values)[0])
    assert len({output.tobytes() for output in outputs}) == len(outputs)
    if graph.inputs[0].dtype == np.int8:
        assert ((np.array(outputs) > -128) & (np.array(outputs) < 127)).any()


def test_synthetic_models_are_the_same_every_time() -> None:
    assert write_tflite(synthetic_graph("kws")) == write_tflite(synthetic_graph("kws"))


@pytest.mark.parametrize("name", OFFICIAL)
def test_synthetic_models_have_the_official_topology(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = zoo.find(name)
    if found.source != "official":
        pytest.skip(f"needs the official {CATALOG[name].file}: set COVP_MODEL_DIR")
    ours, theirs = synthetic_graph(name), load_model(name)
    assert [op.kind for op in ours.ops] == [op.kind for op in theirs.ops]
    for mine, other in zip(ours.ops, theirs.ops, strict=True):
        assert mine.attributes == other.attributes
        assert mine.output.shape == other.output.shape
        assert [t and t.shape for t in mine.inputs] == [t and t.shape for t in other.inputs]


def test_model_dir_comes_first(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("COVP_MODEL_DIR", str(folder))
    assert zoo.find("kws").source == "synthetic"
    path = folder / CATALOG["kws"].file
    path.write_bytes(write_tflite(synthetic_graph("kws")))
    found = zoo.find("kws")
    # a file of the official name with another content must not pass for the official one
    assert (found.path, found.source) == (path, "custom")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the URL that serves it."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, directory=str(folder), **kwargs)  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A content that the catalog takes for the official kws."""
    content = write_tflite(synthetic_graph("kws"))
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(CATALOG, "kws", dataclasses.replace(CATALOG["kws"], sha256=digest))
    return content


def serve(folder: Path, content: bytes) -> None:
    path = folder / CATALOG["kws"].url
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_fetch_stores_what_has_the_hash(
    alone: Path, server: tuple[Path, str], pinned: bytes
) -> None:
    folder, url = server
    serve(folder, pinned)
    begun: list[str] = []
    models = zoo.fetch(["kws"], begun.append, url)
    assert [(m.name, m.source, m.path.read_bytes()) for m in models] == [
        ("kws", "official", pinned)
    ]
    assert begun == ["kws"]
    assert zoo.find("kws").source == "official"
    # there already: nothing is asked for
    assert zoo.fetch(["kws"], begun.append, "http://127.0.0.1:1")[0].source == "official"
    assert begun == ["kws"]


def test_fetch_skips_what_has_no_official_file(alone: Path) -> None:
    begun: list[str] = []
    (model,) = zoo.fetch(["cifar10"], begun.append, "http://127.0.0.1:1")
    assert (model.name, model.source, begun) == ("cifar10", "synthetic", [])
    assert model.path.is_file()


def test_a_model_without_official_file_is_never_taken_from_a_folder(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVP_MODEL_DIR", str(tmp_path))
    assert zoo.find("cifar10").source == "synthetic"


def test_fetch_refuses_another_content(
    alone: Path, server: tuple[Path, str], pinned: bytes
) -> None:
    folder, url = server
    serve(folder, pinned + b"?")
    with pytest.raises(CovpError, match=r"SHA-256 is [0-9a-f]{64}, expected [0-9a-f]{64}"):
        zoo.fetch(["kws"], base_url=url)
    assert not list(alone.glob("*.tflite"))


def test_fetch_without_network(alone: Path) -> None:
    with pytest.raises(CovpError, match=r"cannot download http://127\.0\.0\.1:1.*COVP_MODEL_DIR"):
        zoo.fetch(["kws"], base_url="http://127.0.0.1:1")


def test_a_damaged_download_is_not_used(alone: Path) -> None:
    alone.mkdir(parents=True)
    (alone / CATALOG["kws"].file).write_bytes(b"half a model")
    assert zoo.find("kws").source == "synthetic"


def test_all_files_that_could_not_be_had_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(CovpError) as caught:
        zoo.fetch(base_url="http://127.0.0.1:1")
    text = str(caught.value)
    names = [item.name for item in CATALOG.values() if not item.is_synthetic_only]
    assert len(names) > 1 and all(name in text for name in names)
    assert "is missing (so are " in text and "\n" not in text and len(text) < 500


class Endless(SimpleHTTPRequestHandler):
    """Sends a few bytes again and again."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):  # the other end has hung up
            while True:
                self.wfile.write(b"half a model ")

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("MOST_BYTES", 1000, "it sends more than 1000 bytes"),
        ("MOST_SECONDS", 0, "it was not complete after 0 seconds"),
    ],
)
def test_a_download_ends(
    alone: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, said: str
) -> None:
    monkeypatch.setattr(f"covp.graph.zoo.download.{limit}", value)
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        with pytest.raises(CovpError, match=f"cannot download http.*: {said}; without network"):
            zoo.fetch(["kws"], base_url=f"http://127.0.0.1:{http.server_port}")
        http.shutdown()
    assert not list(alone.glob("*.tflite"))
