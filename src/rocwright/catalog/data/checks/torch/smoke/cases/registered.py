"""Which operators of a package have code for GPUs: read from torch's own table of them."""

from __future__ import annotations

from smoke.model import AbsentError, Context, Told, WrongError


def registered_for_gpus(context: Context, package: str, besides: tuple[str, ...] = ()) -> Told:
    """Each operator of `package` that has code for the CPU has some for GPUs too, but those of `besides`,
    which are named by how they begin.

    It needs no GPU. HIP's code goes under the name of CUDA's. Raises AbsentError where torch was built for
    the CPU alone, WrongError where an operator has none.
    """
    torch = context.torch
    if not (torch.version.hip or torch.version.cuda):
        raise AbsentError("this torch is for the CPU alone")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [one.partition("::") for one in torch._C._dispatch_get_all_op_names()]
    ours = sorted(name for space, _, name in names if space == package and not name.startswith(besides))
    here = [one for one in ours if has(f"{package}::{one}", "CPU")]
    lacking = [one for one in here if not has(f"{package}::{one}", "CUDA")]
    if lacking or not here:
        raise WrongError(f"no code for GPUs is registered for {', '.join(lacking) or 'any operator'}")
    operators = "operator is" if len(here) == 1 else "operators are"
    return Told(f"{len(here)} {operators} registered for GPUs")
