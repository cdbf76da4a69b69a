"""Imports a module of an edited tree, with stand-ins for what is not installed, and without what is named.

import_edited.py MODULE [--without NAME]... [--show EXPRESSION]...
A package that is neither in the tree nor installed becomes a stand-in, whose attributes are classes that take
any call. An expression is evaluated with the module's names, and its value is printed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types

_stood_in = set()


class _Any(type):
    """The type of stand-in classes: any attribute is another one, and so is what any operator gives."""

    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _class(name)

    def __call__(cls, *words, **named):
        # a decorator that is called with a function gives it back
        if len(words) == 1 and not named and isinstance(words[0], types.FunctionType | type):
            return words[0]
        return super().__call__()

    def __iter__(cls):
        return iter(())

    def __getitem__(cls, key):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __instancecheck__(cls, one):
        return type(one) is cls

    def __lt__(cls, other):
        return False

    __gt__ = __le__ = __lt__

    def __ge__(cls, other):
        return True


class _Stand(metaclass=_Any):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _class(name)

    def __call__(self, *words, **named):
        if len(words) == 1 and not named and isinstance(words[0], types.FunctionType | type):
            return words[0]
        return self

    def __iter__(self):
        return iter(())

    def __getitem__(self, key):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def _class(name):
    if name.endswith(("Error", "Exception", "Warning")):
        return type(name, (Exception,), {})
    return _Any(name, (_Stand,), {})


class _Module(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _class(name)


class _Missing(importlib.abc.MetaPathFinder):
    """Before all others: what is to be missing is not found."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """After all others: a stand-in for what is not installed; a module that the tree lacks is an error."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        real = name != top and not isinstance(sys.modules.get(top), _Module)
        own = os.path.exists(top) or os.path.exists(f"{top}.py") or top in sys.stdlib_module_names
        if real or own:
            return None
        _stood_in.add(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--show", action="append", default=[])
    asked = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    sys.meta_path.insert(0, _Missing({one for one in asked.without if one}))
    sys.meta_path.append(_StandIns())
    module = importlib.import_module(asked.module)
    for one in asked.show:
        print(f"{one} = {eval(one, vars(module))!r}")
    print(f"imported, with stand-ins for {', '.join(sorted(_stood_in)) or 'nothing'}")


if __name__ == "__main__":
    main()
