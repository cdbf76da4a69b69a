"""Autograd: gradients of small networks against the CPU in fp64, and against differences of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.model import Case, Context, Told, WrongError
from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPES = ("fp64", "fp32", "fp16", "bf16")


def with_gradients(network: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """The network's result, and the gradient of its weighted sum with respect to each input."""

    def run(*inputs: Any) -> tuple[Any, ...]:
        import torch

        leaves = [one.detach().clone().requires_grad_() for one in inputs]
        result = network(*leaves)
        weights = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype, device=result.device)
        (result.flatten() * weights).sum().backward()
        return result.detach(), *(one.grad for one in leaves)

    return run


def perceptron(x: Any, first: Any, bias: Any, second: Any) -> Any:
    return (x @ first + bias).tanh() @ second


def convolved(x: Any, kernel: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.avg_pool2d(functional.silu(functional.conv2d(x, kernel, bias, padding=1)), 2)


def normalized(x: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], weight, bias).tanh()


def group_normalized(x: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.group_norm(x, 4, weight, bias).tanh()


def attended(query: Any, key: Any, value: Any) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(query, key, value)


def batch_normalized(x: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.batch_norm(x, None, None, weight, bias, training=True)


NETWORKS: dict[
    str, tuple[Callable[..., Any], Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]
] = {
    "perceptron": (
        perceptron,
        lambda draw, n, i, h, o: (
            draw.normal(n, i),
            draw.normal(i, h) / i**0.5,
            draw.normal(h),
            draw.normal(h, o) / h**0.5,
        ),
        ((3, 5, 7, 2), (32, 64, 65, 33), (17, 129, 64, 10)),
    ),
    "convolution": (
        convolved,
        lambda draw, n, c, o, s: (
            draw.normal(n, c, s, s),
            draw.normal(o, c, 3, 3) / (3 * c**0.5),
            draw.normal(o),
        ),
        ((1, 2, 3, 6), (2, 8, 16, 17), (3, 16, 8, 32)),
    ),
    "layer-norm": (
        normalized,
        lambda draw, n, f: (draw.normal(n, f), draw.normal(f), draw.normal(f)),
        # from 128 rows on other kernels: PyTorch 2.12 on waves of 32 lost half of the sums there (#183861)
        ((3, 8), (33, 65), (16, 256), (256, 64), (200, 65)),
    ),
    "group-norm": (
        group_normalized,
        lambda draw, n, c, s: (draw.normal(n, c, s, s), draw.uniform(c, low=0.5, high=2), draw.normal(c)),
        # batches over 128: wrong on waves of 64 (#178872); one value a channel takes kernels of its own
        ((3, 8, 2), (130, 64, 2), (130, 36, 1)),
    ),
    "batch-norm": (
        batch_normalized,
        lambda draw, n, c, s: (draw.normal(n, c, s, s), draw.uniform(c, low=0.5, high=2), draw.normal(c)),
        ((4, 3, 8), (8, 16, 9)),
    ),
    "attention": (
        attended,
        lambda draw, n, h, s, d: tuple(draw.normal(n, h, s, d) for _ in range(3)),
        ((1, 1, 5, 8), (2, 3, 33, 64)),
    ),
}


def cases() -> Iterator[Case]:
    for name, (network, inputs, shapes) in NETWORKS.items():
        one = Operation(name, "gradient", inputs, with_gradients(network), shapes=shapes, types=TYPES)
        yield from one.cases("gradients")
        yield Case("gradients", f"{name} by differences", differences(network, inputs, shapes[0]))
    yield Case("gradients", "training", training)


def differences(network: Any, inputs: Any, shape: tuple[int, ...]) -> Callable[[Context], Told]:
    """torch's gradcheck: the gradients against differences of the function's own values, in fp64."""

    def run(context: Context) -> Told:
        from torch.autograd.gradcheck import GradcheckError

        torch = context.torch
        drawn = inputs(Draw(context, f"differences {shape}"), *shape)
        context.note(f"{shape}", with_gradients(network)(*(one.to(context.device) for one in drawn)))
        leaves = [one.to(context.device).requires_grad_() for one in drawn]
        try:
            torch.autograd.gradcheck(network, leaves, eps=1e-6, atol=1e-5, rtol=1e-3, nondet_tol=1e-9)
        except GradcheckError as error:
            raise WrongError(" ".join(str(error).split())[:300]) from error
        return Told(f"{sum(one.numel() for one in leaves)} inputs, each moved by 1e-6")

    return run


def training(context: Context) -> Told:
    """Forty steps of Adam on a small regression: the loss falls as it does on the CPU in fp64."""
    torch = context.torch
    draw = Draw(context, "training")
    x, first, second = draw.normal(64, 16), draw.normal(16, 32) / 4, draw.normal(32, 1) / 6
    goal = (x[:, :1] * x[:, 1:2]).tanh()

    def losses(device: Any, dtype: Any) -> list[float]:
        weights = [one.to(device, dtype).requires_grad_() for one in (first, second)]
        seen, wanted = x.to(device, dtype), goal.to(device, dtype)
        optimizer = torch.optim.Adam(weights, lr=0.01)
        found = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = ((seen @ weights[0]).tanh() @ weights[1] - wanted).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    mine, expected = losses(context.device, torch.float32), losses("cpu", torch.float64)
    context.note("losses", torch.tensor(mine, dtype=torch.float64))
    error = max(abs(one - other) / other for one, other in zip(mine, expected, strict=False))
    if not error <= 1e-3:
        raise WrongError(
            f"losses {mine[0]:.6f} to {mine[-1]:.6f} where {expected[0]:.6f} to {expected[-1]:.6f} is right"
        )
    return Told(f"40 steps, loss {mine[0]:.4f} to {mine[-1]:.4f}, worst error {error:.2g}", error, 1e-3)
