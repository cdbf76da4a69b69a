"""The cases, a module for each kind of operation; each has `cases()`."""

SUITES = {
    "torch": (
        "about",
        "copies",
        "products",
        "convolutions",
        "reductions",
        "functions",
        "sorting",
        "indexing",
        "transforms",
        "factorizations",
        "attention",
        "gradients",
        "random_numbers",
        "compiled",
    ),
    "vision": ("vision",),
    "audio": ("audio",),
    "triton": ("triton_kernels",),
    "flash-attention": ("flash_attention",),
    "vllm": ("vllm_generates",),
}
"""The modules of each suite, in the order in which they run."""

SUITES["drift"] = tuple(one for one in SUITES["torch"] if one != "about")
"""The same operations, repeated: whether they give the same bits each time."""

NEEDS = {"compile": "triton", "triton": "triton", "flash-attention": "flash-attention"}
"""What a group of operations needs of a target, by the name that the catalog has for it."""
