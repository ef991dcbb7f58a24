"""The topologies of the zoo's models, as float graphs with random weights."""

from __future__ import annotations

from collections.abc import Callable

from covp.graph.attributes import Softmax
from covp.graph.graph import Graph
from covp.graph.zoo.random_network import RandomNetwork
from covp.graph.zoo.rnnoise import rnnoise


def resnet(net: RandomNetwork, width: int = 16) -> Graph:
    """ResNet-8 for CIFAR-10: three blocks of two 3x3 convolutions."""
    x = net.conv(net.input(1, 32, 32, 3), width, (3, 3))
    for filters, stride in ((width, (1, 1)), (2 * width, (2, 2)), (4 * width, (2, 2))):
        y = net.conv(x, filters, (3, 3), stride)
        y = net.conv(y, filters, (3, 3), activation="none")
        if stride != (1, 1):
            x = net.conv(x, filters, (1, 1), stride, "none")
        x = net.add(x, y)
    return net.classify(net.pool_and_flatten(x), 10)


def resnet_large(net: RandomNetwork) -> Graph:
    """The same with 2.5 times the channels."""
    return resnet(net, 40)


def micro_kws_m(net: RandomNetwork) -> Graph:
    """Three convolutions with pools, three fully connected layers."""
    image = net.builder.add("RESHAPE", net.input(1, 1960), shape=(1, 49, 40, 1))
    x = net.max_pool(net.conv(image, 16, (8, 8)), (2, 2))
    x = net.average_pool(net.conv(x, 12, (6, 6)), (2, 2))
    x = net.average_pool(net.conv(x, 16, (4, 4)), (2, 2))
    x = net.dense(net.dense(net.flatten(x), 32, "relu"), 16, "relu")
    return net.classify(x, 10)


def person_detect(net: RandomNetwork) -> Graph:
    """MobileNetV1 of width 0.25 on gray images, a convolution as its classifier."""
    x = net.input(1, 96, 96, 1)
    x = net.depthwise(x, stride=(2, 2), activation="relu6", multiplier=8)
    channels = [16, 32, 32, 64, 64, *[128] * 6, 256, 256]
    strides = [1, 2, 1, 2, 1, 2, *[1] * 5, 2, 1]
    for filters, stride in zip(channels, strides, strict=True):
        x = net.depthwise(x, stride=(stride, stride), activation="relu6")
        x = net.conv(x, filters, (1, 1), activation="relu6")
    x = net.conv(net.average_pool(x, (3, 3), (2, 2)), 2, (1, 1), activation="none")
    return net.builder.graph(net.builder.add("SOFTMAX", net.flatten(x), attributes=Softmax()))


def mnist_lstm(net: RandomNetwork) -> Graph:
    """An LSTM over the 28 rows of a digit; all its outputs are classified."""
    return net.classify(net.flatten(net.lstm(net.input(1, 28, 28), 20)), 10)


def dtln(net: RandomNetwork) -> Graph:
    """The first half of DTLN: two LSTMs over spectra, one an inference, and a mask."""
    x = net.lstm(net.lstm(net.input(1, 1, 257), 128), 128)
    return net.builder.graph(net.builder.add("LOGISTIC", net.dense(x, 257)))


def kws(net: RandomNetwork) -> Graph:
    """DS-CNN: one convolution and four depthwise-separable ones of 64 channels."""
    x = net.conv(net.input(1, 49, 10, 1), 64, (10, 4), (2, 2))
    for _ in range(4):
        x = net.conv(net.depthwise(x), 64, (1, 1))
    return net.classify(net.pool_and_flatten(x), 12)


def vww(net: RandomNetwork) -> Graph:
    """MobileNetV1 of width 0.25."""
    x = net.conv(net.input(1, 96, 96, 3), 8, (3, 3), (2, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for filters, stride in (*blocks, (256, 2), (256, 1)):
        x = net.conv(net.depthwise(x, stride=(stride, stride)), filters, (1, 1))
    return net.classify(net.pool_and_flatten(x), 2)


def toycar(net: RandomNetwork) -> Graph:
    """An autoencoder of ten fully connected layers, eight units in the middle."""
    x = net.input(1, 640)
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, units, "relu")
    return net.builder.graph(net.dense(x, 640, gain=10.0))


def sww(net: RandomNetwork) -> Graph:
    """Depthwise-separable convolutions along time, then one row of 32 features."""
    x = net.input(1, 30, 1, 40)
    for rows, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        x = net.depthwise(x, (rows, 1), same=False, activation="none")
        x = net.conv(x, filters, (1, 1))
    return net.classify(net.flatten(x), 3)


def cifar10(net: RandomNetwork) -> Graph:
    """The CNN of the microTVM thesis: three 5x5 convolutions with pools, one dense layer.

    Given are the kernels' sizes, the channels and the order of the layers. Left open, chosen here:
    SAME padding and pools of 2x2 in steps of 2, with which the inputs of the convolutions are
    32x32, 16x16 and 8x8 as in its comparison of single operators; ReLU, fused into the convolution
    as TFLite does; and no SOFTMAX at the end.
    """
    x = net.input(1, 32, 32, 3)
    for filters in (32, 32, 64):
        x = net.max_pool(net.conv(x, filters, (5, 5)), (2, 2))
    return net.builder.graph(net.dense(net.flatten(x), 10))


TOPOLOGIES: dict[str, Callable[[RandomNetwork], Graph]] = {
    "resnet": resnet,
    "kws": kws,
    "vww": vww,
    "toycar": toycar,
    "sww": sww,
    "cifar10": cifar10,
    "resnet_large": resnet_large,
    "micro_kws_m": micro_kws_m,
    "person_detect": person_detect,
    "mnist_lstm": mnist_lstm,
    "dtln": dtln,
    "rnnoise": rnnoise,
}
"""Name to the function that lays the layers."""
