"""The zoo's catalog: MLPerf Tiny reference models, with the hashes of the official files.

And others of public repositories, and models of which no official file exists, whose weights are
always synthetic.
"""

from __future__ import annotations

from dataclasses import dataclass

BASE_URL = (
    "https://raw.githubusercontent.com/mlcommons/tiny/"
    "1afd2c9820f795965a6134facd0b4dfae41ef23f/benchmark/training"
)
"""The commit of mlcommons/tiny (Apache-2.0) that the hashes belong to."""
TFLM_URL = (
    "https://raw.githubusercontent.com/tensorflow/tflite-micro/"
    "90b983c2b3f1480642e040bbd2ddb37b998f3424/tensorflow/lite/micro"
)
"""The commit of tensorflow/tflite-micro (Apache-2.0) that the hashes belong to."""
MLONMCU_URL = (
    "https://raw.githubusercontent.com/tum-ei-eda/mlonmcu-models/"
    "c50faafa9d304d5e92389e8c21fb67495dce9ccb"
)
"""The commit of tum-ei-eda/mlonmcu-models (MIT) that the hashes belong to."""


@dataclass(frozen=True)
class Entry:
    """One model of the zoo.

    Attributes:
        name: what users type.
        description: the task, in a few words.
        dtype: "int8" or "float32", of activations.
        macs: multiply-accumulates of one inference.
        folder: of the official file below ``base_url``.
        file: name of the official file; "" where there is none, then ``folder`` and ``sha256`` too.
        sha256: of the official file, hexadecimal.
        base_url: of the repository at a commit.
        more: beyond the benchmark's four tasks.
    """

    name: str
    description: str
    dtype: str
    macs: int
    folder: str = ""
    file: str = ""
    sha256: str = ""
    base_url: str = BASE_URL
    more: bool = False

    @property
    def is_synthetic_only(self) -> bool:
        """True if there is no official file."""
        return not self.file

    @property
    def url(self) -> str:
        """Path of the official file below the base URL."""
        return f"{self.folder}/{self.file}"


_RESNET = ("image classification, 32x32x3, 10 classes", 12_501_632, "image_classification")
_KWS = ("keyword spotting, 49x10 MFCC, 12 words", 2_656_768, "keyword_spotting")
_VWW = ("visual wake words, 96x96x3, person or not", 7_489_664, "visual_wake_words")
_TOYCAR = ("anomaly detection, autoencoder of 640 features", 264_192, "anomaly_detection")
_SWW = ("streaming wake word, 30x40 features, 3 classes", 826_368, "streaming_wakeword")


def _entry(name: str, about: tuple[str, int, str], dtype: str, file: str, sha256: str) -> Entry:
    description, macs, task = about
    return Entry(name, description, dtype, macs, f"{task}/trained_models", file, sha256)


_ENTRIES = (
    _entry(
        "resnet",
        _RESNET,
        "int8",
        "pretrainedResnet_quant.tflite",
        "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
    ),
    _entry(
        "kws",
        _KWS,
        "int8",
        "kws_ref_model.tflite",
        "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
    ),
    _entry(
        "vww",
        _VWW,
        "int8",
        "vww_96_int8.tflite",
        "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
    ),
    _entry(
        "toycar",
        _TOYCAR,
        "int8",
        "ad01_int8.tflite",
        "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
    ),
    _entry(
        "sww",
        _SWW,
        "int8",
        "str_ww_ref_model.tflite",
        "3af8550895ba7d5c584277102b5075c52dcfa63ba9d2b2240f37c4e6abd5dd2b",
    ),
    Entry("cifar10", "image classification, three 5x5 convolutions", "int8", 12_298_240),
    _entry(
        "resnet_float",
        _RESNET,
        "float32",
        "pretrainedResnet.tflite",
        "b5c0046d6e0328b4956afd6baa29555a29b1f1c65bdd45aaed75b7cd484d9f79",
    ),
    _entry(
        "kws_float",
        _KWS,
        "float32",
        "kws_ref_model_float32.tflite",
        "e5004c6f1012246e33fa068d8488325538e0444073cd361f5a7edb40c73f12d2",
    ),
    _entry(
        "vww_float",
        _VWW,
        "float32",
        "vww_96_float.tflite",
        "115bbc094d2119561320a21f01b6500a18bea8cc8589282ab007097bec8af38c",
    ),
    _entry(
        "toycar_float",
        _TOYCAR,
        "float32",
        "ad01_fp32.tflite",
        "c66636f4d7f8af8b10518e7be750a22c9d8d46ec97326b40b0d94c097e0aad9b",
    ),
    Entry(
        "resnet_large",
        "image classification of MLPerf Tiny 1.4, 32x32x3, 10 classes",
        "int8",
        76_473_920,
        "image_classification/trained_models",
        "pretrainedResnet_large_int8.tflite",
        "dc27dcd823f5665533352f7da516b0c9bc6f089914b8283782e55961b3423fcf",
        more=True,
    ),
    Entry(
        "micro_kws_m",
        "keyword spotting, 49x40 features, 10 classes",
        "int8",
        5_709_472,
        "micro_kws_m_quantized",
        "micro_kws_m_quantized.tflite",
        "d3620e52e3f1e069bbe5ba5b7a71b021e5f0bd58a7ad60f1ae960ff90b4cb550",
        MLONMCU_URL,
        more=True,
    ),
    Entry(
        "person_detect",
        "person detection of TFLite Micro, 96x96 gray",
        "int8",
        7_157_888,
        "models",
        "person_detect.tflite",
        "808cfdfc0cf3a6fa6f6fa26bfa379ea97c16d5db7334637766e39c3408502e9d",
        TFLM_URL,
        more=True,
    ),
    Entry(
        "mnist_lstm",
        "digits by an LSTM over 28 rows",
        "int8",
        113_120,
        "examples/mnist_lstm",
        "trained_lstm_int8.tflite",
        "a44e4d8a6c051db582414915ee28ee0462bd47e9f150e4a095fb5a126b88d885",
        TFLM_URL,
        more=True,
    ),
    Entry(
        "mnist_lstm_float",
        "digits by an LSTM over 28 rows",
        "float32",
        113_120,
        "examples/mnist_lstm",
        "trained_lstm.tflite",
        "479430996e6d6fce4d2fcd2e370af939918e743bc9a7c90907f09e8bafa59658",
        TFLM_URL,
        more=True,
    ),
    Entry(
        "dtln",
        "noise suppression, two LSTMs that keep their state",
        "int8",
        361_088,
        "examples/dtln",
        "dtln_noise_suppression.tflite",
        "91e94316d1a4747dd3bddcf58423927e97213913a9b4210edca3f9402b2ff0fe",
        TFLM_URL,
        more=True,
    ),
    Entry(
        "rnnoise",
        "noise suppression, three GRUs with their states as inputs",
        "int8",
        86_952,
        "2sort",
        "rnnoise_INT8.tflite",
        "9c582545b7c13af44616c44b654f4fe721aa2585630b0ca173ca3589f6f11c2c",
        MLONMCU_URL,
        more=True,
    ),
)

CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
"""The entries by name, in the order of listings."""
