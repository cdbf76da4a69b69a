"""Reference pages, made of click, pydantic and the catalog when the site is built: a hook of mkdocs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import cleandoc, formatannotation
from typing import Any, get_args

import click
from pydantic import BaseModel

from rocbase.errors import FailureClass
from rocwright.catalog.base import Base
from rocwright.catalog.issue import Issue, the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component, Stack
from rocwright.cli.group import cli
from rocwright.cli.stacks import cells
from rocwright.model.edits import Edit
from rocwright.plan.resolve.evidence import Evidence
from rocwright.plan.resolve.model import Request
from rocwright.verify.standing import Standing, standings

COMMANDS = "See [errors](errors.md) for what to do about an exit status."
ROWS = """A row is a stack for a GPU on a base. "Open" counts what the first `rocwright lock` with a network
adds. "Rehearsed" is the part that was tried [on another base](rehearse.md)."""
ISSUES = """[`rocwright diagnose`](commands.md#diagnose) and failed steps recognise these failures in logs.
The blocks contain lines as programs print them."""


def on_files(files: Any, config: Any) -> None:
    """Add the generated pages to those of docs/; mkdocs calls it."""
    file = import_module("mkdocs.structure.files").File  # the tests of the pages need no mkdocs
    for name, content in pages().items():
        files.append(file.generated(config, name, content=content))


def pages() -> dict[str, str]:
    """Return the text of each generated page by its name."""
    context = click.Context(cli, info_name="rocwright", **cli.context_settings)
    statuses = _table(("status", "failure"), ((str(each.exit_code), each.value) for each in FailureClass))
    sections = {
        "commands.md": ("# Command line", COMMANDS, statuses, *_commands(cli, context, 2)),
        "rows.md": ("# Every stack and row", ROWS, *_stacks()),
        "known-issues.md": ("# Known issues", ISSUES, *_issues(the_issues()[0].values())),
        "schema.md": ("# Fields of recipes and files", *_models(Request, Component, Stack, Base, Edit)),
    }
    return {name: "\n\n".join(texts) + "\n" for name, texts in sections.items()}


def _text(text: str) -> str:
    """Return a text in which no sign outside of backticks means anything to Markdown."""
    parts = text.split("`") if text.count("`") % 2 == 0 else [text.replace("`", "'")]
    parts[::2] = [re.sub(r"[\\*_<>\[\]#|{}]", lambda sign: f"&#{ord(sign[0])};", part) for part in parts[::2]]
    return "`".join(parts)


def _table(header: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    lines = (header, ("---",) * len(header), *rows)
    return "\n".join("| " + " | ".join(" ".join(cell.split()) for cell in line) + " |" for line in lines)


def _commands(group: click.Group, above: click.Context, level: int) -> Iterator[str]:
    """Yield a section for each visible command below a group, with an anchor such as `patch-check`."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, parent=above, info_name=name, **command.context_settings)
        anchor = context.command_path.removeprefix("rocwright ").replace(" ", "-")
        yield f"{'#' * level} {context.command_path} {{#{anchor}}}"
        yield from _command(command, context)
        if isinstance(command, click.Group):
            yield from _commands(command, context, level + 1)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield "`" + " ".join(context.get_usage().removeprefix("Usage: ").split()) + "`"
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield f"```\n{paragraph[2:]}\n```" if paragraph.startswith("\b") else _text(paragraph)
    records = (param.get_help_record(context) for param in command.get_params(context))
    options = [(f"`{record[0]}`", _text(record[1])) for record in records if record and record[1]]
    yield _table(("option", "what it does"), options)


def _stacks() -> Iterator[str]:
    """Yield a section for each stack: its rows, what was asked for, and the evidence."""
    found = standings(builtin_catalog())
    for name, stack in sorted(builtin_catalog().stacks.items()):
        rows = [row for row in found if row.stack == name]
        yield f"## {name} {{#{name}}}\n\n{_text(stack.summary)}."
        yield _table(("GPU", "base", "versions", "age", "lock", "best evidence"), map(_row, rows))
        wishes = (map(_text, (row.gpu, row.base, row.wish, row.holds)) for row in rows)
        yield _table(("GPU", "base", "asked for", "what it contains"), wishes)
        facts = dict.fromkeys(_fact(fact) for row in rows for fact in row.evidence)
        yield _table(("GPU", "base", "evidence", "detail", "shown by"), facts) if facts else ""


def _row(row: Standing) -> tuple[str, ...]:
    _, gpu, base, provider, versions, age, locks, plans, seen, rehearsed = map(_text, cells(row))
    seen += f" ({rehearsed} rehearsed)" if rehearsed else ""
    built_on = f"{versions} ({provider})" if provider else versions
    return gpu, base, built_on, age, f"{locks}; {plans}", seen


def _fact(fact: Evidence) -> tuple[str, ...]:
    said = _text(f"{fact.said} on {fact.device}" if fact.device else fact.said)
    gpus = ", ".join(fact.gpu) or "all"
    return gpus, fact.base, said, _text(fact.detail), f"`{fact.source}` {fact.run}"


def _issues(issues: Iterable[Issue]) -> Iterator[str]:
    """Yield a section for each class of failure, and one for each issue with its name as the anchor."""
    last = ""
    for issue in sorted(issues, key=lambda issue: (issue.failure.value, issue.name)):
        if issue.failure.value != last:
            last = issue.failure.value
            yield f"## {last.capitalize()} {{#class-{last.replace(' ', '-')}}}"
        yield f"### {issue.name} {{#{issue.name}}}"
        where = [", ".join(names) for names in (issue.components, issue.targets, issue.bases) if names]
        where += [f"{name} {versions}" for name, versions in issue.versions.items()]
        means = issue.means[0].upper() + issue.means[1:]
        yield _text(f"{means} ({'; '.join(where)})." if where else f"{means}.")
        yield "```\n" + "\n".join([quote.line for quote in issue.quotes] or issue.examples) + "\n```"
        yield f"**Cause.** {_text(issue.cause)}\n\n**Fix.** {_text(issue.remedy)}"
        yield from (f"Fixed in {one.component} {_text(one.versions)}." for one in issue.fixed_in)
        links = (f"<{link}>" for link in (*issue.upstream, *(quote.source for quote in issue.quotes)))
        yield f"Source: {'; '.join([*map(_text, issue.source), *links])} ({issue.confidence})."


def _models(*models: type[BaseModel]) -> Iterator[str]:
    """Yield a section for each model and the models of its fields: types and defaults."""
    queue = list(models)
    for model in queue:  # which grows on the way
        rows = []
        for name, field in model.model_fields.items():
            queue += (part for part in dict.fromkeys(_parts(field.annotation)) if part not in queue)
            value = getattr(field.default, "value", field.default)
            default = "required" if field.is_required() else f"`{value!r}`"
            written = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", formatannotation(field.annotation))
            rows.append((f"`{field.alias or name}`", f"`{written}`", default))
        yield f"## {model.__name__} {{#{model.__name__.lower()}}}"
        yield _text(cleandoc(model.__doc__ or ""))
        yield _table(("field", "type", "default"), rows)


def _parts(annotation: Any) -> list[type[BaseModel]]:
    here = [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
    return here + [model for part in get_args(annotation) for model in _parts(part)]
