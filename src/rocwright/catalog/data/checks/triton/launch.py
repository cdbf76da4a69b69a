"""Launches a compiled kernel through HIP and compares what it computes with numpy.

usage: launch.py FOLDER KERNEL      the folder that suite.py wrote, and the kernel's name

Prints `TARGET COUNT WRONG` of the device that it ran on, and the first wrong value.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kernels import KERNELS, Array, Kernel

TYPES: dict[str, Any] = {
    "fp64": numpy.float64, "fp32": numpy.float32, "fp16": numpy.float16, "bf16": numpy.uint16,
    "i64": numpy.int64, "i32": numpy.int32, "i8": numpy.int8,
}  # fmt: skip
PROPERTIES = 8192
"""Bytes that hipDeviceProp_t may take; it had 1,472 in HIP 6.4."""


class Device:
    """The first device of HIP. Each call raises RuntimeError if HIP refuses it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libamdhip64.so")
        self.library.hipGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: {self.library.hipGetErrorString(status).decode()}")

    def put(self, array: Array) -> ctypes.c_void_p:
        """Return the address of a copy of an array."""
        address = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self.call(
            "hipMemcpy", address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), 1
        )
        return address

    def get(self, address: ctypes.c_void_p, array: Array) -> None:
        self.call(
            "hipMemcpy", array.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(array.nbytes), 2
        )

    def target(self) -> str:
        """Return the GPU's name, which stands in the properties as text."""
        properties = ctypes.create_string_buffer(PROPERTIES)
        self.call("hipGetDevicePropertiesR0600", properties, 0)
        at = properties.raw.index(b"gfx")
        return properties.raw[at : properties.raw.index(b"\0", at)].decode()

    def launch(self, code: bytes, facts: dict[str, Any], grid: int, addresses: list[ctypes.c_void_p]) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), code)
        self.call("hipModuleGetFunction", ctypes.byref(function), module, facts["name"].encode())
        # behind the arrays come two scratch areas of Triton's, which these kernels do not use
        arguments = [*addresses, ctypes.c_void_p(), ctypes.c_void_p()]
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        threads = facts["num_warps"] * facts["warp_size"]
        shape = (grid, 1, 1, threads, 1, 1)
        self.call("hipModuleLaunchKernel", function, *shape, facts["shared"], None, pointers, None)
        self.call("hipDeviceSynchronize")


def narrowed(values: Array, dtype: str) -> Array:
    """Return values in a type; bf16 as its bits, rounded to the nearest even."""
    if dtype != "bf16":
        return values.astype(TYPES[dtype])
    bits = values.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def widened(array: Array, dtype: str) -> Array:
    if dtype == "bf16":
        return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return array.astype(numpy.int64 if dtype in ("i8", "i32", "i64") else numpy.float64)


def inputs(kernel: Kernel) -> list[Array]:
    """Return the arrays that the kernel reads: numbers of about one, whole numbers and indexes below 8."""
    drawn = numpy.random.default_rng(1)
    return [
        drawn.integers(0, 8, shape).astype(TYPES[dtype])
        if dtype in ("i8", "i32", "i64")
        else narrowed(drawn.uniform(-1, 1, shape), dtype)
        for dtype, shape in zip(kernel.arrays[:-1], kernel.shapes, strict=False)
    ]


def main(folder: Path, name: str) -> int:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    place = folder / name.replace("/", "-")
    arrays = inputs(kernel)
    dtype = kernel.arrays[-1]
    result = numpy.zeros(kernel.shapes[-1], TYPES[dtype])
    device = Device()
    addresses = [device.put(array) for array in (*arrays, result)]
    facts = json.loads(place.with_suffix(".json").read_text())
    device.launch(place.with_suffix(".hsaco").read_bytes(), facts, kernel.grid, addresses)
    device.get(addresses[-1], result)
    expected = kernel.expected(
        *(widened(array, kind) for array, kind in zip(arrays, kernel.arrays, strict=False))
    )
    got = widened(result, dtype)
    wrong = ~(numpy.abs(got - expected) <= kernel.tolerance * numpy.maximum(1, numpy.abs(expected)))
    first = int(wrong.argmax()) if wrong.any() else 0
    more = f" at {first}: {got.flat[first]!r}, numpy has {expected.flat[first]!r}" if wrong.any() else ""
    print(f"{device.target()} {got.size} {int(wrong.sum())}{more}")
    return int(wrong.any())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
