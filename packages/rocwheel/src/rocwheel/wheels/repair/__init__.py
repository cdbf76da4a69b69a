"""A wheel that needs ROCm, made to stand alone: `bundle` writes it, `plan_for` says what would be done.

What is brought in: all that its libraries need and that, but for the system's; what ROCm's libraries open by
name; and the folders of kernels that they read (catalog/data/libraries.toml).
"""

from rocwheel.wheels.repair.make import Made, bundle, plan_for
from rocwheel.wheels.repair.model import Plan, Request
from rocwheel.wheels.repair.trace import Traced, check_traced, trace

__all__ = ["Made", "Plan", "Request", "Traced", "bundle", "check_traced", "plan_for", "trace"]
