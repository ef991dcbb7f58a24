"""An operator that covp does not know: a reshape under a vendor's name."""

from covp.graph.graph import Op
from covp.graph.user_operators import UserOperator

VENDOR_FLATTEN = UserOperator(
    "VendorFlatten",
    reference=lambda op, values: [values[0].reshape(op.output.shape)],
    infer_shapes=lambda op: [op.output.shape],  # as the model file states it
    compose=lambda op: [Op("RESHAPE", op.name, [op.input(0)], op.outputs)],
)
