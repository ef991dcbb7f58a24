"""Structures as arguments: their members reach C, and what C writes comes back."""

import numpy as np
import pytest

import covp
from covp.errors import DeviceFault, UsageError
from covp.testing import Buffer, Kernel

SOURCE = """
#include <stddef.h>
#include <stdint.h>
typedef struct { int32_t w, h; } tile;
enum mode { FIRST, SECOND = 70000 };
struct node { int8_t value; const struct node *next; };
typedef struct {
    uint8_t flag;
    int16_t zero;
    tile stride;
    const tile *other;
    int64_t wide;
    float factor;
    enum mode mode;
    int16_t taps[2][2];
    const int8_t *input;
    int32_t *output;
    struct node *list;
    union { int32_t number; uint8_t bytes[4]; } both;
    unsigned bits : 3;
} params;

int32_t run(const params *p, params *result, int n)
{
    for (int i = 0; i < n; i++)
        p->output[i] = 2 * p->input[i];
    *result = *p;
    result->stride.h = -5;
    result->taps[1][1] = 9;
    int32_t sum = p->list ? p->list->value : 0;
    if (p->list && p->list->next)
        sum += 10 * p->list->next->value;
    return sum + p->zero + p->stride.w + (p->other ? p->other->h : 0);
}
uint32_t same(const params *p, const int32_t *out) { return p->output == out; }
size_t size(void) { return sizeof(params); }
"""


@pytest.fixture(scope="module", params=["riscv32", "cortex-m4"])
def kernels(request):
    with covp.Session(request.param) as session:
        module = session.load_c(SOURCE)
        yield {name: Kernel(module[name]) for name in ("run", "same", "size")}


def test_members_of_all_kinds(kernels):
    output = np.zeros(3, np.int32)
    p = {
        "zero": -300, "flag": 255, "stride": {"w": 1000, "h": 2}, "other": {"h": 20000},
        "wide": -(2**40), "factor": 0.5, "mode": 70000, "taps": np.array([[1, 2], [3, -4]]),
        "input": np.array([1, -128, 127], np.int8), "output": output,
        "list": {"value": 3, "next": {"value": 4}}, "both": {"number": -2},
    }  # fmt: skip
    result: dict[str, object] = {}
    assert kernels["run"](p, result, 3) == 3 + 40 - 300 + 1000 + 20000
    assert output.tolist() == [2, -256, 254]
    assert result == {
        "flag": 255, "zero": -300, "stride": {"w": 1000, "h": -5}, "wide": -(2**40), "factor": 0.5,
        "mode": 70000, "taps": [1, 2, 3, 9], "both": {"number": -2, "bytes": [254, 255, 255, 255]},
    }  # fmt: skip
    assert p["stride"] == {"w": 1000, "h": 2}, "const: as it was"


def test_the_same_array_is_one_piece_of_memory(kernels):
    output = np.zeros(3, np.int32)
    assert kernels["same"]({"output": output}, output) == 1
    assert kernels["same"]({"output": output}, output.copy()) == 0
    placed = Buffer(output, alignment=16, offset=4)
    assert kernels["same"]({"output": placed}, placed) == 1
    assert kernels["same"]({"output": None}, output) == 0


def test_members_left_out_are_zero(kernels):
    assert kernels["run"]({}, {}, 0) == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"zeros": 1}, "p has no member zeros: did you mean zero"),
        ({"zero": 40000}, "p.zero is int of 2 bytes and does not take 40000"),
        ({"flag": -1}, "p.flag is unsigned int of 1 bytes and does not take -1"),
        ({"zero": "1"}, "p.zero is int of 2 bytes and does not take '1'"),
        ({"stride": 3}, "p.stride is a structure tile: a dictionary is needed"),
        ({"stride": {"x": 3}}, "p.stride has no member x"),
        ({"input": 1.5}, "p.input is a pointer: an array, a Buffer, a tensor or None is needed"),
        ({"taps": [1] * 5}, "p.taps has 4 elements, not 5"),
        ({"bits": 1}, "p.bits is a bit field"),
    ],
)
def test_what_does_not_fit_is_one_line(kernels, values, message):
    with pytest.raises(UsageError) as error:
        kernels["run"](values, {}, 0)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_dictionary_for_a_pointer_to_numbers(kernels):
    with pytest.raises(UsageError, match="int32_t"):
        kernels["same"]({}, {"a": 1})


def test_the_sanitizer_knows_what_is_behind_pointers():
    """Members may be accessed within their bounds, const ones not be changed."""
    source = """
    #include <stdint.h>
    typedef struct { const int8_t *in; int8_t *out; int n; } job;
    int run(const job *j)
    {
        for (int i = 0; i < j->n; i++)
            j->out[i] = j->in[i];
        return 0;
    }
    int spoil(const job *j) { *(int8_t *)j->in = 1; return 0; }
    int sum(const job *j) { return j->in[0] + j->in[1] > 0 ? 1 : 2; }
    """
    with covp.Session("riscv32", sanitize=True) as session:
        module = session.load_c(source)
        run, spoil, sum_ = (Kernel(module[name]) for name in ("run", "spoil", "sum"))
        a, out = np.arange(4, dtype=np.int8), np.zeros(4, np.int8)
        run({"in": a, "out": out, "n": 4})
        assert out.tolist() == [0, 1, 2, 3]
        with pytest.raises(DeviceFault, match=r"offset 4 of j\.out, which has 4 bytes"):
            run({"in": np.zeros(9, np.int8), "out": out, "n": 5})
        with pytest.raises(DeviceFault) as fault:
            spoil({"in": a})
        assert fault.value.kind == "write to const" and "j.in" in str(fault.value)
        with pytest.raises(DeviceFault) as fault:
            sum_({"in": Buffer(a, written=False)})
        assert fault.value.kind == "uninitialised read"
