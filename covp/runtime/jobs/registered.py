"""`Registered`: what a user's code registered in this process, so that another one knows it too."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from covp.codegen import intrinsics
from covp.graph.user_operators import registered_from


@dataclass(frozen=True)
class Registered:
    """Operators and instructions from outside covp. Pickles.

    Attributes:
        modules: that register operators when they are imported, users' files included.
        dot_products, requantize: instructions; they are data.
    """

    modules: tuple[str, ...]
    dot_products: tuple[intrinsics.DotProduct, ...]
    requantize: tuple[intrinsics.RequantizeInstruction, ...]

    @staticmethod
    def here() -> Registered:
        """Collect all that is registered in this process."""
        return Registered(
            registered_from(), intrinsics.dot_products(), intrinsics.requantize_instructions()
        )

    @property
    def is_portable(self) -> bool:
        """Return whether other processes can have it: not what a script or a notebook registers."""
        return "__main__" not in self.modules

    def register(self) -> None:
        """Make all of it known in this process."""
        for module in self.modules:
            importlib.import_module(module)
        for product in self.dot_products:
            intrinsics.register(product)
        for instruction in self.requantize:
            intrinsics.register_requantize(instruction)
