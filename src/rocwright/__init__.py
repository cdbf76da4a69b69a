"""rocwright: the ROCm machine-learning stack for AMD GPUs, built reproducibly."""

from rocwheel.version import __version__ as __version__
