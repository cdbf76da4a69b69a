"""The version, of rocwheel and of rocwright: the one place."""

__version__ = "0.1.0"
