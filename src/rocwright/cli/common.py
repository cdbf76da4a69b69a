"""Options that several verbs share, and the project that they stand for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import Field, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from rocwheel.cli.common import completions
from rocwright.cli import place
from rocwright.cli.place import say
from rocwright.execution.options import CLICK, BuildOptions, StepOptions
from rocwright.model.architecture import Architecture

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rocwright.project import Project

F = TypeVar("F", bound=Callable[..., Any])


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion with names of the catalog."""

    def names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from rocwright.catalog.load import the_catalog

        catalog = the_catalog()
        choices: dict[str, list[str]] = {
            "stack": list(catalog.stacks),
            "component": list(catalog.components),
            "provider": list(catalog.providers),
            "base": [name for base in catalog.bases.values() for name in base.names],
        }
        return [name for name in choices[kind] if name.startswith(incomplete)]

    return names


def complete_gpu(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion with targets and, once something is typed, names of products and chips."""
    from rocwright.catalog.load import the_catalog
    from rocwright.plan.resolve.gpus import table_of

    return completions(table_of(the_catalog()).gpus, incomplete)


# Bytes with which not even one compiler starts.
LEAST_MEMORY = 64 * 2**20


def complete_engine(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion with names of sandbox engines."""
    from rocwright.sandbox import ENGINES

    return [name for name in ENGINES if name.startswith(incomplete)]


def complete_executor(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion with names of executors."""
    from rocwright.farm.executors import names

    return [name for name in names() if name.startswith(incomplete)]


_BYTES = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def size_option(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """The bytes that an option's value means, such as 50GiB."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d+)?) ?((?:[KMGT]iB)?)", text or "")
    if text is not None and match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 50GiB, 800MiB or a number of bytes.")
    return int(float(match[1]) * _BYTES[match[2]]) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a command line asks for instead of a project file; all of it empty: the project file's."""

    stack: str | None
    gpus: tuple[str, ...]
    base: str | None
    provider: str
    extra: tuple[str, ...]
    versions: dict[str, str]
    architecture: str | None = None
    accept_missing: tuple[str, ...] = ()
    allow_untested: bool = False

    @property
    def names_a_stack(self) -> bool:
        return self.stack is not None or bool(self.gpus) or self.base is not None

    def after(self, verb: str) -> str:
        """The command line that asks another verb for the same."""
        return shlex.join(["rocwright", verb, *self.words])

    @property
    def words(self) -> list[str]:
        """How it is said behind a verb."""
        name, _, origin = (self.stack or "").partition(":")
        words = [*filter(None, [name]), *(["--from", origin] if origin else [])]
        words += [word for gpu in self.gpus for word in ("--gpu", gpu)]
        words += ["--base", self.base] if self.base else []
        words += ["--arch", self.architecture] if self.architecture else []
        words += ["--provider", self.provider] if self.provider else []
        words += [word for name in self.extra for word in ("--with", name)]
        words += [word for name in self.accept_missing for word in ("--accept-missing", name)]
        words += ["--allow-untested"] if self.allow_untested else []
        pins = (f"{name}{'' if to.startswith('@') else '='}{to}" for name, to in self.versions.items())
        return [*words, *(word for pin in pins for word in ("--set", pin))]

    @property
    def changes(self) -> dict[str, Any]:
        """What is asked for beside the stack, the GPUs and the base."""
        named = {
            "provider": self.provider,
            "extra": self.extra,
            "versions": self.versions,
            "architecture": self.architecture,
            "accept_missing": self.accept_missing,
            "allow_untested": self.allow_untested,
        }
        return {name: value for name, value in named.items() if value}


def arch_option(function: F) -> F:
    """--arch on every verb that takes a base."""
    return click.option(
        "--arch",
        "architecture",
        type=click.Choice([architecture.value for architecture in Architecture]),
        help="The processor to build for; otherwise this machine's.",
    )(function)


def tells_changes(function: F) -> F:
    """What the verb changes is told to whom the settings name, however it ends."""

    @wraps(function)
    def telling(*args: Any, **rest: Any) -> Any:
        from rocwright.home import Home
        from rocwright.plugins import load

        changes_told = load("rocwright.changes", "notify")
        with changes_told(Home.default(), say) if changes_told else nullcontext():
            return function(*args, **rest)

    return cast("F", telling)


def origin_option(function: F) -> F:
    """--from on every verb that takes a stack."""
    return click.option(
        "--from",
        "stack_origin",
        default="",
        metavar="ORIGIN",
        help="Which origin of STACK to take if it has several: published, built, image.",
    )(function)


def with_origin(stack: str | None, origin: str) -> str | None:
    """Return the name of a stack with its origin."""
    if origin and not stack:
        raise click.UsageError("--from needs a STACK.")
    return f"{stack}:{origin}" if origin else stack


STACK = click.argument("stack", required=False, shell_complete=complete("stack"))


def project_options(function: F, stack: Callable[[Any], Any] = STACK) -> F:
    """STACK (or what else gives `stack`), --gpu, --base and their like, as one argument `selection`."""

    @wraps(function)
    def gather(
        *args: Any,
        stack: str | None,
        stack_origin: str,
        gpus: tuple[str, ...],
        base: str | None,
        architecture: str | None,
        provider: str,
        extra: tuple[str, ...],
        accept_missing: tuple[str, ...],
        allow_untested: bool,
        sets: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        selection = Selection(
            stack=with_origin(stack, stack_origin),
            gpus=gpus,
            base=base,
            architecture=architecture,
            provider=provider,
            extra=extra,
            accept_missing=accept_missing,
            allow_untested=allow_untested,
            versions=versions_of(sets),
        )
        with place.completed():
            return function(*args, selection=selection, **rest)

    for option in (
        click.option(
            "--set",
            "sets",
            multiple=True,
            metavar="NAME=VERSION",
            help="Pin a component: pytorch=2.8.0, or vllm@COMMIT. May be given more than once.",
        ),
        click.option(
            "--allow-untested",
            is_flag=True,
            help="Allow versions pinned by --set on a ROCm that they were never seen on.",
        ),
        click.option(
            "--accept-missing",
            multiple=True,
            metavar="LIBRARY",
            help="Accept a library of ROCm without code for the GPU, such as rocblas.",
        ),
        click.option("--with", "extra", multiple=True, help="Add an optional component of the stack."),
        click.option(
            "--provider", default="", shell_complete=complete("provider"), help="Where ROCm comes from."
        ),
        arch_option,
        origin_option,
        click.option("--base", help="Such as debian:sid.", shell_complete=complete("base")),
        click.option(
            "--gpu",
            "gpus",
            multiple=True,
            shell_complete=complete_gpu,
            help='Such as gfx1151 or "RX 580"; repeatable, or commas; auto uses the GPU of this machine.',
        ),
        stack,
    ):
        gather = option(gather)
    return cast("F", gather)


def versions_of(sets: tuple[str, ...]) -> dict[str, str]:
    """Components and what they are pinned to: a version, or "@" and a commit."""
    versions: dict[str, str] = {}
    for setting in sets:
        match = re.fullmatch(r"([\w.+-]+)(?:=([\w.+!-]+(?: like [\w.+!-]+)?)|(@[0-9a-f]{40,64}))", setting)
        if match is None:
            raise click.UsageError(
                f"--set {setting!r} is neither NAME=VERSION nor NAME@COMMIT (a full commit id, in "
                "hexadecimal)."
            )
        versions[match[1]] = match[2] or match[3]
    return versions


def memory_option(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """The bytes that a build may have."""
    memory = size_option(context, parameter, text)
    if memory is not None and memory < LEAST_MEMORY:
        raise click.BadParameter(
            f"{text!r} is too little for any step; use at least 512MiB, better some GiB."
        )
    return memory


# What click needs besides the table.
_SETTINGS: dict[str, dict[str, Any]] = {
    "engine": {"shell_complete": complete_engine},
    "executor": {"shell_complete": complete_executor},
    "memory": {"callback": memory_option},
}


def _option_of(option: Field[Any]) -> Callable[[F], F]:
    """Return the decorator of click for an option of the table."""
    settings: dict[str, Any] = dict(option.metadata[CLICK])
    words = settings.pop("words")
    if "least" in settings:
        settings["type"] = click.IntRange(min=settings.pop("least"))
    return click.option(*words, option.name, **settings, **_SETTINGS.get(option.name, {}))


def build_options(*names: str, table: type[StepOptions] = BuildOptions) -> Callable[[F], F]:
    """Return a decorator that adds the options of those names, else all, and passes them as `options`."""
    steps = {option.name for option in fields(StepOptions)}
    own = sorted(fields(table), key=lambda option: option.name in steps)
    chosen = [option for option in own if not names or option.name in names]

    def decorate(function: F) -> F:
        @wraps(function)
        def with_options(**values: Any) -> Any:
            given = {option.name: values.pop(option.name) for option in chosen}
            return function(options=table.from_values(given), **values)

        # the last decorator is the first option that --help shows
        for option in reversed(chosen):
            _option_of(option)(with_options)
        return cast("F", with_options)

    return decorate


def engine_option(function: F) -> F:
    """--engine on every verb that runs sandboxes."""
    [engine] = (option for option in fields(BuildOptions) if option.name == "engine")
    return _option_of(engine)(function)


def here(*, quiet: bool = False) -> Path:
    """The folder of the project: this one, or the nearest above it that has a project file, which is told
    unless `quiet`."""
    from rocwright.plan.resolve.folder import PROJECT, project_folder

    folder = project_folder(Path.cwd())
    if folder != Path.cwd() and not quiet:
        say(f"{PROJECT} is that of {folder}")
    return folder


def the_project(selection: Selection) -> Project:
    """The project of this folder or one above it, or the one that the options name. Raises InputError."""
    from rocbase.errors import InputError
    from rocwright import api
    from rocwright.plan.resolve.folder import PROJECT

    if not selection.names_a_stack:
        try:
            project = api.project(folder=here())
        except InputError as error:
            error.next_step = error.next_step.replace("rocwright build STACK", f"{_command_line()} STACK")
            raise
        if selection.changes:
            raise InputError(
                f"{', '.join(selection.changes)} cannot be changed here",
                cause=f"the {PROJECT} in this folder defines the request",
                next_step=f"rocwright lock --set ... writes it into {PROJECT} and locks again",
            )
        return project
    if selection.stack is None:
        raise InputError(
            "no stack named",
            cause="--gpu and --base need the name of a stack; without them the rocwright.toml in "
            "this folder is used",
            next_step=f"name one of {', '.join(api.stacks())}",
        )
    place.remember(selection.words)
    return api.project(selection.stack, selection.gpus, selection.base or "", say=say, **selection.changes)


def _command_line() -> str:
    """Return the command under way with the arguments before its stack."""
    context = click.get_current_context()
    names = [param.name for param in context.command.params if isinstance(param, click.Argument)]
    words = [str(context.params[name]) for name in names if name != "stack" and context.params.get(name)]
    return shlex.join([*context.command_path.split(), *words])


def not_a_stack(step: str, verb: str) -> None:
    """Raise InputError where a stack's name stands in the place of a step's."""
    from rocbase.errors import InputError
    from rocwright.catalog.load import the_catalog

    stack = the_catalog().stacks.get(step)
    if stack is not None and step not in the_catalog().components:
        first = stack.components[0]
        raise InputError(
            f"{step} is a stack, not a step",
            cause=f"its steps: {', '.join(stack.components)}, root/build, ...",
            next_step=f"rocwright {verb} {first} {step}, or rocwright plan {step} for all of its steps",
        )
