"""The first wrong layer: each one alone, from the reference's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError, DeviceFault
from covp.evaluation.check import lowered_tensors
from covp.evaluation.sample import Sample
from covp.graph.equality import differences
from covp.laboratory.outcome import find_differences
from covp.testing.bisect.bench import BisectBench
from covp.testing.bisect.tensors import FILL, content

Array = NDArray[Any]
Kind = Literal["wrong output", "overwritten tensor", "fault"]


@dataclass(frozen=True, eq=False)
class WrongLayer:
    """One layer, run alone, that is wrong: all that is needed to see it again.

    Attributes:
        bench: where it runs.
        position: of the layer in the program.
        values: the tensors before it, by name.
        fill: what is in the rest of the arena.
        kind: what is wrong.
        tensor: name of the one that is wrong; empty for a fault.
        wanted: its content as it should be; None for a fault.
        law: flat indices in which two contents of it differ: ``law(got, wanted)``.
        other: the bench that it was compared with, and the layer's position there; None: the
            reference.
        error: the fault.
    """

    bench: BisectBench
    position: int
    values: Mapping[str, Array]
    kind: Kind
    tensor: str = ""
    wanted: Array | None = None
    law: Callable[[Array, Array], NDArray[np.intp]] = differences
    other: tuple[BisectBench, int] | None = None
    fill: bytes = FILL
    error: DeviceFault | AcceleratorError | None = None

    @property
    def image(self) -> bytes:
        """The arena's content before the layer."""
        return self.bench.tensors.image(self.position, self.values, self.fill)

    def got(self) -> Array:
        """Run the layer and return the tensor. Raises DeviceFault, AcceleratorError."""
        after = self.bench.run(self.position, self.image)
        return content(after, self.bench.tensors.places[self.tensor])


@dataclass(frozen=True)
class LayerReference:
    """The reference that layers are compared with.

    Attributes:
        other: a program on another device or from another compiler; None: the reference.
        ulps: floats of two builds may be so many representable numbers apart.
    """

    other: BisectBench | None = None
    ulps: int = 0

    def law(self, got: Array, wanted: Array) -> NDArray[np.intp]:
        """Find the elements that differ, by flat index: to the bit, or by `covp.graph.equality`."""
        if self.other is None:
            return differences(got, wanted)
        return find_differences(got, wanted, self.ulps)


class Walk:
    """A walk through a program's layers for one input after the other.

    Args:
        bench: the program.
        comparison: with what.

    Attributes:
        layers: names of those that were compared.
    """

    def __init__(self, bench: BisectBench, comparison: LayerReference) -> None:
        self.bench, self.comparison = bench, comparison
        self.layers: set[str] = set()
        writers = comparison.other.program.layers if comparison.other else ()
        self._others = {t.name: i for i, layer in enumerate(writers) for t in layer.outputs}

    def first_wrong(self, sample: Sample) -> WrongLayer | None:
        """Find the first layer that is wrong; None if all are right.

        Args:
            sample: inputs and states before the inference.
        """
        program = self.bench.program
        expected = lowered_tensors(program, sample)
        values = dict(expected)
        values |= {t.name: a for t, a in zip(program.inputs, sample.inputs, strict=True)}
        for position, layer in enumerate(program.layers):
            trial = WrongLayer(self.bench, position, dict(values), "fault")
            try:
                after = self.bench.run(position, trial.image)
            except (DeviceFault, AcceleratorError) as error:
                return WrongLayer(self.bench, position, trial.values, "fault", error=error)
            wrong = self._judge_outputs(position, after, values, expected)
            if wrong is not None:
                return wrong
            self.layers.add(layer.function)
            for tensor in layer.outputs:
                values.setdefault(tensor.name, content(after, tensor))
        return None

    def _judge_outputs(
        self,
        position: int,
        after: bytes,
        values: dict[str, Array],
        expected: Mapping[str, Array],
    ) -> WrongLayer | None:
        """Say what is wrong with a layer's outputs, or with tensors that it must not change."""
        bench, law = self.bench, self.comparison.law
        for tensor in bench.program.layers[position].outputs:
            beside = self._beside(tensor.name, values)
            wanted = expected.get(tensor.name) if beside is None else beside[0]
            if wanted is None:
                continue
            got = content(after, tensor)
            if law(got, wanted).size:
                other = None if beside is None else beside[1]
                trial = WrongLayer(
                    bench, position, dict(values), "wrong output", tensor.name, wanted, law, other
                )
                return self._of_the_wrong_one(trial, got, expected.get(tensor.name))
        for name in bench.tensors.kept(position):
            place = bench.tensors.places[name]
            if name in values and find_differences(content(after, place), values[name]).size:
                return WrongLayer(
                    bench,
                    position,
                    dict(values),
                    "overwritten tensor",
                    name,
                    values[name],
                    find_differences,
                )
        return None

    def _beside(
        self, name: str, values: Mapping[str, Array]
    ) -> tuple[Array, tuple[BisectBench, int]] | None:
        """Compute a tensor by the other build, from the same inputs; None without one."""
        other, position = self.comparison.other, self._others.get(name)
        if other is None or position is None:
            return None
        after = other.run(position, other.tensors.image(position, values))
        return content(after, other.tensors.places[name]), (other, position)

    def _of_the_wrong_one(
        self, trial: WrongLayer, got: Array, expected: Array | None
    ) -> WrongLayer:
        """Return the trial of the build that differs from the reference, if one of two does."""
        if trial.other is None or expected is None:
            return trial
        assert trial.wanted is not None
        other, position = trial.other
        mine, theirs = (differences(a, expected).size for a in (got, trial.wanted))
        if mine or not theirs:
            return trial
        back = (trial.bench, trial.position)
        return WrongLayer(
            other, position, trial.values, trial.kind, trial.tensor, got, trial.law, back
        )
