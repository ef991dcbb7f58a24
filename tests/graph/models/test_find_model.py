"""What a model's name or path means, beside folders and files of a zoo model's name."""

import pickle
import zipfile
from pathlib import Path

import pytest

from covp.errors import ModelError, UsageError
from covp.graph import zoo
from covp.graph.attributes import Softmax
from covp.graph.models import ModelFile, find_model, load_model
from covp.graph.passes import run_passes
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite


@pytest.fixture
def content() -> bytes:
    builder = GraphBuilder("tiny")
    x = builder.input((1, 8), scale=0.1)
    return write_tflite(
        builder.graph(
            builder.add("SOFTMAX", x, attributes=Softmax(), scale=1 / 256, zero_point=-128)
        )
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("net.pt", "torch.onnx.export"), ("net.pth", "torch.onnx.export"),
        ("net.keras", "tf2onnx.convert --keras "), ("net.H5", "tf2onnx.convert --keras "),
        ("net.safetensors", "weights alone"), ("net.bin", "expected .tflite or .onnx"),
        ("net.pkl", "skl2onnx"), ("net.joblib", "skl2onnx"), ("net.pb", "--graphdef"),
    ],
)  # fmt: skip
def test_what_other_programs_save_is_refused_with_what_makes_a_model_of_it(
    tmp_path: Path, name: str, advice: str
) -> None:
    (tmp_path / name).write_bytes(bytes(range(200)))
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path / name)
    assert advice in str(caught.value) and ".onnx" in str(caught.value)


class Trap:
    """Unpickling it would leave a file."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("unpickled"),))


@pytest.mark.parametrize("name", ["net.pkl", "net.joblib", "net.onnx", "net.tflite", "net"])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_a_pickle_is_never_loaded(folder: Path, name: str, protocol: int) -> None:
    Path(name).write_bytes(pickle.dumps(Trap(), protocol))
    with pytest.raises(ModelError, match="a pickle, which covp never loads") as caught:
        load_model(f"./{name}")
    assert "skl2onnx" in str(caught.value) and not Path("unpickled").exists()


def test_content_of_other_programs_is_known_under_any_name(folder: Path) -> None:
    """An HDF5 file (Keras) and a ZIP archive (PyTorch, Keras 3), and a SavedModel's folder."""
    Path("a.tflite").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with zipfile.ZipFile("b.onnx", "w") as archive:
        archive.writestr("archive/data.pkl", b"weights")
    Path("my model").mkdir()
    Path("my model/saved_model.pb").touch()
    Path("c.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    for name, told in (
        ("a.tflite", "a Keras model"),
        ("c.onnx", "git lfs pull"),
        ("b.onnx", "torch.onnx.export"),
        ("my model", "--saved-model 'my model' "),
    ):
        with pytest.raises(ModelError, match=told):
            load_model(f"./{name}")


def test_a_path(content: bytes, folder: Path) -> None:
    path = folder / "7 wonders.tflite"
    path.write_bytes(content)
    assert find_model(path) == ModelFile("7 wonders", path, "file")
    graph = load_model(str(path))
    assert (graph.name, graph.source, graph.ops[0].kind) == ("model_7_wonders", "file", "SOFTMAX")


def test_a_name(folder: Path) -> None:
    found = find_model("cifar10")
    assert (found.name, found.source) == ("cifar10", "synthetic")
    graph = found.load()
    assert (graph.name, graph.source) == ("cifar10", "synthetic")
    assert run_passes(graph).source == "synthetic"


def test_a_folder_hides_no_zoo_model(folder: Path) -> None:
    for name in ("cifar10", "other"):
        (folder / name).mkdir()
    assert find_model("cifar10").source == "synthetic"
    with pytest.raises(ModelError, match="other: is a directory"):
        load_model("other")


def test_a_file_hides_a_zoo_model(content: bytes, folder: Path) -> None:
    Path("cifar10").write_bytes(content)
    graph = load_model("cifar10")
    assert (graph.source, graph.ops[0].kind) == ("file", "SOFTMAX")
    assert find_model(Path("cifar10")) == ModelFile("cifar10", Path("cifar10"), "file")


def test_what_is_no_model(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"m\.onnx: no such file"):
        load_model(folder / "m.onnx")
    (folder / "M.ONNX").write_bytes(b"no model")
    with pytest.raises(ModelError, match="damaged or no ONNX model"):
        load_model("M.ONNX")
    with pytest.raises(ModelError, match="no such file"):
        load_model("folder/kws")
    with pytest.raises(UsageError, match="did you mean resnet"):
        load_model("resnt")


def test_the_official_file_is_hashed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / zoo.entry("kws").file).write_bytes(b"not the official one")
    monkeypatch.setenv("COVP_MODEL_DIR", str(folder))
    asked = []
    monkeypatch.setattr(zoo, "_is_official", lambda path, wanted: asked.append(path))
    assert find_model("kws").source == "custom"
    assert len(asked) == 1
