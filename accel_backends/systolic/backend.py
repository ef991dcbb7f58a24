"""A systolic array with a scratchpad that takes commands; the compiler cuts layers into tiles."""

from __future__ import annotations

from covp.accelerator import Parameter, Tile, TiledAccelerator, TimingCheck
from covp.graph.graph import Graph, copy_graph
from covp.graph.passes.fuse_attention import expand_attention


class Systolic(TiledAccelerator):
    """Systolic array of rows x columns int8 multipliers with a scratchpad: sums of products.

    A tile is a matrix product of pixels x depth by depth x channels. One of the three matrices
    stays in the array (``dataflow``), a block of it at a time; the other two pass by, skewed, an
    element of each row in a cycle. A block takes

        load + passes + rows + columns - 2

    cycles: as many to load it as the array has rows (none for the output, whose sums start at 0),
    one for each step of the loop that passes by, and the way through the array. These are the
    cycles of SCALE-Sim 3.0.0 (Samajdar et al., ISPASS 2020), by which blocks follow each other when
    the last one has left the array; of the output the sums are read out at once. With ``preload``
    the next block is loaded while one is used and follows it at once, as in Gemmini (Genc et al.,
    DAC 2021): the way through the array is left once a tile. Verilog of such arrays takes one cycle
    more a tile, in which the last sum is stored. A synthetic model, not a measurement.
    """

    name = "systolic"
    parameters = (
        Parameter("rows", 16, "rows of the array", 1, 256),
        Parameter("columns", 16, "columns of the array", 1, 256),
        Parameter(
            "dataflow",
            "weights",
            "matrix that stays in the array",
            choices=("weights", "outputs", "inputs"),
        ),
        Parameter("preload", True, "the next block is loaded while one is used"),
        *TiledAccelerator.parameters,
    )
    timing_check = TimingCheck(
        "SCALE-Sim 3.0.0 where memory does not wait, 123 layers", 0.068, {"preload": False}
    )

    def before_partitioning(self, graph: Graph) -> Graph:
        """Attention in tiles becomes matrix products again."""
        expanded = copy_graph(graph)
        expand_attention(expanded)
        return expanded

    def multipliers(self) -> int:
        """One for each place of the array."""
        return self._size("rows") * self._size("columns")

    def cycles(self, tile: Tile) -> int:
        """See the class."""
        rows, columns = self._size("rows"), self._size("columns")
        down, across, passes = {
            "weights": (tile.depth, tile.channels, tile.pixels),
            "outputs": (tile.pixels, tile.channels, tile.depth),
            "inputs": (tile.depth, tile.pixels, tile.channels),
        }[str(self.values["dataflow"])]
        load = 0 if self.values["dataflow"] == "outputs" else rows
        blocks = -(-down // rows) * -(-across // columns) * tile.groups
        through = rows + columns - 2
        if self.values["preload"]:
            return load + (blocks - 1) * max(passes, load) + passes + through
        return blocks * (load + passes + through)

    def _size(self, parameter: str) -> int:
        return int(self.values[parameter])
