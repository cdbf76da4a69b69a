"""Triton: kernels compiled and run on the device, and compiled for targets without one."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from smoke.compare import compare
from smoke.model import AbsentError, Case, Context, Told, WrongError
from smoke.operation import Draw, require_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError as missing:
    if missing.name != "triton":
        raise
    triton = None
else:

    @triton.jit
    def add_kernel(x, y, out, count, block: tl.constexpr):
        places = tl.program_id(0) * block + tl.arange(0, block)
        inside = places < count
        tl.store(
            out + places, tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside), mask=inside
        )

    @triton.jit
    def softmax_kernel(x, out, columns, block: tl.constexpr):
        row, places = tl.program_id(0), tl.arange(0, block)
        values = tl.load(x + row * columns + places, mask=places < columns, other=-float("inf"))
        parts = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + places, parts / tl.sum(parts, axis=0), mask=places < columns)

    @triton.jit
    def matmul_kernel(a, b, c, m, n, k, m_tile: tl.constexpr, n_tile: tl.constexpr, k_tile: tl.constexpr):
        rows, columns = (
            tl.program_id(0) * m_tile + tl.arange(0, m_tile),
            tl.program_id(1) * n_tile + tl.arange(0, n_tile),
        )
        total = tl.zeros((m_tile, n_tile), dtype=tl.float32)
        for start in range(0, k, k_tile):
            terms = start + tl.arange(0, k_tile)
            left = tl.load(a + rows[:, None] * k + terms, mask=(rows[:, None] < m) & (terms < k), other=0.0)
            right = tl.load(
                b + terms[:, None] * n + columns, mask=(terms[:, None] < k) & (columns < n), other=0.0
            )
            total += tl.dot(left, right, input_precision="ieee")
        kept = (rows[:, None] < m) & (columns < n)
        tl.store(c + rows[:, None] * n + columns, total.to(c.dtype.element_ty), mask=kept)


AHEAD: tuple[tuple[str, dict[str, str], dict[str, int]], ...] = (
    ("add_kernel", {"x": "*fp32", "y": "*fp32", "out": "*fp32", "count": "i32"}, {"block": 256}),
    ("softmax_kernel", {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"block": 256}),
    (
        "matmul_kernel",
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32"},
        {"m_tile": 32, "n_tile": 32, "k_tile": 32},
    ),
)
"""Kernels to compile ahead of time: arguments by type, and the constants of their tiles."""


def cases() -> Iterator[Case]:
    yield Case("triton", "loads", loads)
    for name, run in (("add", add), ("softmax", softmax)):
        yield Case("triton", f"{name} fp32", _on_device(run, "fp32"))
    for type_name in ("fp32", "fp16", "bf16"):
        yield Case("triton", f"matmul {type_name}", _on_device(matmul, type_name))
    for name, signature, constants in AHEAD:
        yield Case("triton", f"{name.partition('_')[0]} ahead of time", _ahead(name, signature, constants))


def loads(context: Context) -> Told:
    """Triton imports; which back ends it has."""
    if triton is None:
        raise AbsentError("triton is not installed")
    from triton.backends import backends

    active = ""
    if context.on_gpu:
        target = triton.runtime.driver.active.get_current_target()
        active = f", the device is {target.backend} {target.arch}, wave size {target.warp_size}"
    return Told(f"triton {triton.__version__}, back ends {', '.join(sorted(backends))}{active}")


def _on_device(run: Callable[[Context, str], Told], type_name: str) -> Callable[[Context], Told]:
    def case(context: Context) -> Told:
        if triton is None:
            raise AbsentError("triton is not installed")
        if not context.on_gpu:
            raise AbsentError("a Triton kernel runs on a GPU only")
        require_type(context, type_name)
        return run(context, type_name)

    return case


def add(context: Context, type_name: str) -> Told:
    """Two vectors, of lengths at and off the edge of a block."""
    worst = 0.0
    counts = (1, 255, 256, 257, 100_003)
    for count in counts:
        draw = Draw(context, f"triton add {count}")
        x, y = (draw.normal(count).to(context.dtype(type_name)) for _ in range(2))
        there, other = x.to(context.device), y.to(context.device)
        out = context.torch.empty_like(there)
        add_kernel[(triton.cdiv(count, 256),)](there, other, out, count, block=256)
        context.wait()
        worst = max(
            worst, compare(context, out, x.double() + y.double(), "function", type_name, str(count)).error
        )
    return Told(f"{len(counts)} lengths, worst error {worst:.2g}")


def softmax(context: Context, type_name: str) -> Told:
    """Rows shorter and longer than a wave."""
    worst, columns = 0.0, (1, 31, 64, 65, 1000)
    for count in columns:
        x = Draw(context, f"triton softmax {count}").normal(33, count).to(context.dtype(type_name))
        there = x.to(context.device)
        out = context.torch.empty_like(there)
        softmax_kernel[(33,)](there, out, count, block=triton.next_power_of_2(count))
        context.wait()
        expected = x.double().softmax(-1)
        worst = max(worst, compare(context, out, expected, "softmax", type_name, f"33x{count}").error)
    return Told(f"{len(columns)} row lengths, worst error {worst:.2g}")


def matmul(context: Context, type_name: str) -> Told:
    """Products at and off the edges of tiles of 32."""
    worst, tolerance = 0.0, 0.0
    shapes = ((32, 32, 32), (1, 64, 33), (127, 65, 129), (256, 256, 256))
    for m, k, n in shapes:
        draw = Draw(context, f"triton matmul {m} {k} {n}")
        a, b = (draw.normal(*one).to(context.dtype(type_name)) for one in ((m, k), (k, n)))
        out = context.torch.empty(m, n, dtype=context.dtype(type_name), device=context.device)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        matmul_kernel[grid](
            a.to(context.device), b.to(context.device), out, m, n, k, m_tile=32, n_tile=32, k_tile=32
        )
        context.wait()
        found = compare(context, out, a.double() @ b.double(), "product", type_name, f"{m}x{k}x{n}")
        worst, tolerance = max(worst, found.error), found.tolerance
    return Told(f"{len(shapes)} shapes, worst error {worst:.2g}", worst, tolerance)


def _ahead(name: str, signature: dict[str, str], constants: dict[str, int]) -> Callable[[Context], Told]:
    """The kernel compiled for each target asked for, with no GPU of it at hand: is there machine code?"""

    def case(context: Context) -> Told:
        if triton is None:
            raise AbsentError("triton is not installed")
        if not context.targets:
            raise AbsentError("no target was named (--target)")
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        told = []
        for named in context.targets:
            target, _, wave = named.partition(":")
            backend = "cuda" if target.isdigit() else "hip"
            # every argument must stand in the signature, the constants as such
            whole = {**signature, **dict.fromkeys(constants, "constexpr")}
            # the name of the argument changed with Triton 3.3
            known = inspect.signature(ASTSource).parameters
            fixed = {"constexprs" if "constexprs" in known else "constants": constants}
            source = ASTSource(fn=_kernel(name), signature=whole, **fixed)
            arch: Any = int(target) if backend == "cuda" else target
            try:
                made = triton.compile(source, target=GPUTarget(backend, arch, int(wave or 32)))
            except Exception as error:
                text = " ".join(str(error).split())[-200:]
                raise WrongError(
                    f"no code for {target}: {type(error).__name__}: {text}",
                    cause="this Triton does not compile for the target, or lacks a tool for it",
                    next_step="see the compiler's words in the log; a later Triton may have the target",
                ) from error
            code = made.asm.get("hsaco") or made.asm.get("cubin") or b""
            if not code.startswith(b"\x7fELF"):
                raise WrongError(f"for {target} there is no machine code in {sorted(made.asm)}")
            told.append(f"{target} {len(code)} bytes")
        return Told(f"compiled, not run: {', '.join(told)}")

    return case


def _kernel(name: str) -> Any:
    return globals()[name]
