"""rocwright: the ROCm machine-learning stack for AMD GPUs, built reproducibly."""

__version__ = "0.1.0"
