"""Rows of sweeps as a store has them, made of formulas: no model is run."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Mapping
from typing import Any

MODELS = {"kws": 2.7e6, "vww": 7.5e6, "resnet": 12.5e6}
"""Multiply-accumulates."""
PLATFORMS = {"cv32e40p": 80e6, "stm32l4r5": 120e6}
SETUPS: dict[str, tuple[str, ...]] = {"": (), "gemm": ("gemm",), "qconv2d": ("qconv2d",)}
SIZES, WIDTHS, WAITS = [4, 8, 16, 32], [1, 2, 4, 8], [0, 1, 2, 4]


def row(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    vary: Mapping[str, Any],
    version: str = "0.1.0",
) -> dict[str, Any]:
    """One point: cycles of compute and memory, energy and area of the units."""
    macs, clock = MODELS[model], PLATFORMS[platform]
    waits = vary.get("platform.flash.wait_states", 0)
    size = next((v for name, v in vary.items() if name.endswith("size")), 8)
    width = next((v for name, v in vary.items() if name.endswith("bytes_per_cycle")), 4)
    per_mac = 1 / size + 0.3 / width if accelerators else 4.0
    per_mac *= 1.3 if "qconv2d" in accelerators else 1
    cycles = round(macs * (per_mac + 0.35 + 0.12 * waits))
    key = hashlib.sha256(
        repr((model, platform, accelerators, sorted(vary.items()), version)).encode()
    )
    retimed = bool(vary)
    return {
        "model": model,
        "platform": platform,
        "accelerators": list(accelerators),
        "toolchain": "zig",
        "optimize": "cycles",
        "vary": dict(vary),
        "status": "ok",
        "reason": None,
        "how": "retimed" if retimed else "run",
        "instructions": round(macs * (0.4 if accelerators else 3.1)),
        "cycles": cycles,
        "seconds": cycles / clock,
        "waiting": cycles // 7 if accelerators else 0,
        "energy_j": 1.1e-11 * cycles + 2.3e-12 * macs * bool(accelerators) * (1 + size / 64),
        "area_um2": (350.0 * size + 900.0 * width) * (0.8 if "qconv2d" in accelerators else 1)
        if accelerators
        else 0.0,
        "flash_bytes": round(macs / 40) + 4000 * len(accelerators),
        "ram_bytes": round(macs / 90) + 64 * size,
        "arena_bytes": round(macs / 100),
        "matches_reference": True,
        "accuracy": None,
        "cycles_error": 0.003 if platform == "cv32e40p" else None,
        "cycles_model": platform if platform == "cv32e40p" else "cortex-m4",
        "key": key.hexdigest(),
        "covp_version": version,
    }


def grid(version: str = "0.1.0", models: tuple[str, ...] = ("kws", "vww")) -> list[dict[str, Any]]:
    """A grid over everything; one set-up fails on one platform."""
    rows = []
    for model, platform, (name, accelerators) in itertools.product(
        models, PLATFORMS, SETUPS.items()
    ):
        own = {f"{name}.size": SIZES, f"{name}.bytes_per_cycle": WIDTHS} if name else {}
        names = {**own, "platform.flash.wait_states": WAITS}
        for combination in itertools.product(*names.values()):
            one = row(
                model, platform, accelerators, dict(zip(names, combination, strict=True)), version
            )
            if name == "qconv2d" and platform == "stm32l4r5":
                one |= failure("CapacityError: 300 KB of weights do not fit 256 KB of flash")
            rows.append(one)
    return rows


def failure(reason: str) -> dict[str, Any]:
    """What a failed point has instead of figures."""
    figures = (
        "instructions",
        "cycles",
        "seconds",
        "waiting",
        "energy_j",
        "area_um2",
        "flash_bytes",
    )
    rest = ("ram_bytes", "arena_bytes", "matches_reference", "cycles_error", "cycles_model", "how")
    return {"status": "failed", "reason": reason} | dict.fromkeys((*figures, *rest))


def searched(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Random points of a large space, with accuracy."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        vary = {
            "gemm.size": draw.randrange(1, 65),
            "gemm.bytes_per_cycle": draw.randrange(1, 33),
            "gemm.startup": draw.randrange(0, 200),
            "platform.flash.wait_states": draw.randrange(0, 8),
            "platform.clock_hz": draw.randrange(16, 200) * 1_000_000,
        }
        one = row(draw.choice([*MODELS]), draw.choice([*PLATFORMS]), ("gemm",), vary)
        one["seconds"] = one["cycles"] / vary["platform.clock_hz"]
        one["cycles"] += 40 * vary["gemm.startup"]
        one["accuracy"] = round(0.9 - 0.1 * draw.random() ** 2, 4)
        rows.append(one)
    return rows
