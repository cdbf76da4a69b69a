"""A command of many verbs, of which only the one that is called is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class UnknownVerbError(click.UsageError):
    """A word that is no verb; `possibilities` are those that look like it."""

    def __init__(self, word: str, possibilities: Sequence[str], context: click.Context) -> None:
        super().__init__(f"There is no command {word!r}.", context)
        self.possibilities = tuple(possibilities)


class Verbs(click.Group):
    """A group whose commands are imported only when they are called: name -> one line of help, in order.

    A verb's module lies in `package` under the verb's name, or under that which `modules` gives; if there is
    none, `load` gives the verb, or None. `sections` are how help groups the verbs, `aliases` are other words
    for them, which help does not name. `elsewhere` gives the verb for a word of other programs, which may be
    a verb with an option, such as `build --dry-run`. `help VERB` is `VERB --help`.
    """

    def __init__(
        self,
        *args: Any,
        verbs: Mapping[str, str],
        package: str,
        modules: Mapping[str, str] | None = None,
        load: Callable[[str], click.Command | None] = lambda _: None,
        aliases: Mapping[str, str] | None = None,
        sections: Mapping[str, Mapping[str, str]] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> None:
        super().__init__(*args, **attrs)
        self.verbs = verbs
        self._sections = sections or {"Commands": verbs}
        self._package = package
        self._modules = modules or {}
        self._load = load
        self._aliases = aliases or {}
        self.elsewhere = elsewhere or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"] and "help" not in self.verbs:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self._aliases.get(cmd_name, cmd_name)
        if cmd_name not in self.verbs:
            return None
        module = self._modules.get(cmd_name, cmd_name.replace("-", "_"))
        if find_spec(f"{self._package}.{module}") is None:
            return self._load(cmd_name)
        command: click.Command = importlib.import_module(f"{self._package}.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            args
            and args[0] not in self.verbs
            and args[0] not in self._aliases
            and not args[0].startswith("-")
        ):
            from difflib import get_close_matches

            verb = self.elsewhere.get(args[0])
            near = [verb] if verb else get_close_matches(args[0], self.verbs, n=2)
            raise UnknownVerbError(args[0], near, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # written from the table: help imports no verb
        for title, verbs in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))


class DefaultVerb(Verbs):
    """A group of which one verb may be left out: `attest FILE` stands for `attest file FILE`.

    That verb takes a file, or what it completes itself.
    """

    def __init__(self, *args: Any, default: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self._default = default

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        completions = super().shell_complete(ctx, incomplete)
        verb = self.get_command(ctx, self._default)
        assert verb is not None
        first = next(param for param in verb.params if isinstance(param, click.Argument))
        return [*completions, *first.shell_complete(ctx, incomplete), CompletionItem(incomplete, type="file")]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        verb = args[0] if args else ""
        asks = verb in ctx.help_option_names
        completing = ctx.resilient_parsing and not args
        if not asks and not completing and verb not in self.verbs:
            args = [self._default, *args]
        return super().parse_args(ctx, args)
