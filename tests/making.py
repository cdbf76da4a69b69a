"""What benchmarks make too lies in samples; tests find it here as well."""

from samples.making import *  # noqa: F403
