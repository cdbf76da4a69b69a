"""What the remedies of a lock change in a plan: environments, commands, edits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.refuse import refused
from rocwright.catalog.remedy import CompilerFlags, RemedyAction, SetVariables, TakeEdit, UnsetVariables
from rocwright.model.edits import Edit
from rocwright.model.step_environment import BUILD
from rocwright.plan.resolve.model import Lock

# Where a step's programs lie that add flags to those of compilers.
WRAPPERS = f"{BUILD}/compilers"


def actions_for(lock: Lock, component: str) -> tuple[RemedyAction, ...]:
    """What remedies do where a component is built."""
    return tuple(remedy.action for remedy in lock.in_force if remedy.component == component)


def edits_of(lock: Lock, component: str) -> tuple[Edit, ...]:
    """The edits that remedies add to a component's own, whichever component failed."""
    return tuple(
        remedy.action.edit
        for remedy in lock.in_force
        if isinstance(remedy.action, TakeEdit) and remedy.action.component == component
    )


def memory_of(lock: Lock, component: str) -> int:
    """The bytes that one job of a component is taken to want, as remedies say; 0 where none does."""
    return max((remedy.memory for remedy in lock.in_force if remedy.component == component), default=0)


def remedied_environment(env: Mapping[str, str], actions: Iterable[RemedyAction]) -> dict[str, str]:
    """An environment as remedies change it."""
    remedied = dict(env)
    for action in actions:
        match action:
            case SetVariables():
                for name, value in action.variables.items():
                    existing = remedied.get(name) if action.join else None
                    remedied[name] = value if existing is None else f"{existing}{action.join}{value}"
            case UnsetVariables():
                for name in action.variables:
                    remedied.pop(name, None)
    return remedied


def remedied_commands(commands: Sequence[str], actions: Iterable[RemedyAction]) -> tuple[str, ...]:
    """A recipe's commands behind the remedies' wrappers of compilers, with the remedies' words after each
    that does nothing but set variables of theirs, or takes in a file that may."""
    actions = tuple(actions)
    words = [word for action in actions for word in _words(action)]
    remedied = [
        _wrapped(flags, index)
        for index, flags in enumerate(a for a in actions if isinstance(a, CompilerFlags))
    ]
    if not words:
        return (*remedied, *commands)
    for command in commands:
        names = assigned(command)
        remedied += [
            command,
            *(word.text for word in words if word.name in names or (takes_in(command) and word.again)),
        ]
    return tuple(remedied)


@dataclass(frozen=True, slots=True)
class _Word:
    """What a remedy says of a variable; whether it may be said `again` where nothing else was said since."""

    name: str
    text: str
    again: bool = True


def _wrapped(action: CompilerFlags, index: int) -> str:
    """A command that puts a program before each compiler which adds flags behind all others.

    The compiler cache looks for the compilers where they were before: else it would find this program.
    """
    folder, flags = f"{WRAPPERS}/{index}", shlex.quote(shlex.join(action.flags))
    return f"""mkdir -p {folder}
for rocwright_name in {" ".join(action.programs)}; do
  rocwright_real="$(command -v "$rocwright_name")" || continue
  printf '#!/bin/sh\\nexec "%s" "$@" %s\\n' "$rocwright_real" {flags} > {folder}/"$rocwright_name"
  chmod 755 {folder}/"$rocwright_name"
done
export CCACHE_PATH="${{CCACHE_PATH-$PATH}}" PATH="{folder}:$PATH\""""


def _words(action: RemedyAction) -> Iterator[_Word]:
    match action:
        case SetVariables():
            for name, value in action.variables.items():
                text, join = shlex.quote(value), shlex.quote(action.join)
                if action.join:
                    yield _Word(name, f'export {name}="${name}"{join}{text}', again=False)
                else:
                    yield _Word(name, f"export {name}={text}")
        case UnsetVariables():
            yield from (_Word(name, f"unset {name}") for name in action.variables)


def takes_in(command: str) -> bool:
    """Whether a command does nothing but run a file in the shell itself (`. ./env.sh`)."""
    return re.fullmatch(r"\s*(?:\.|source)\s+[^\s;&|()<>]+\s*", command) is not None


def assigned(command: str) -> tuple[str, ...]:
    """The variables that a command sets for those behind it; none where it does anything else too."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ()
    words = words[1:] if words[:1] == ["export"] else words
    names = [match[1] for word in words if (match := re.match(r"([A-Za-z_]\w*)=", word))]
    return tuple(names) if len(names) == len(words) else ()


def check_remedies(lock: Lock, catalog: Catalog) -> None:
    """Raise InputError for a remedy that no build may have: locks come from strangers too."""
    for remedy in lock.in_force:
        reason = refused(remedy.action, catalog)
        if reason:
            raise InputError(
                f"the lock's remedy for {remedy.issue} cannot be part of a build",
                cause=reason,
                next_step=f"rocwright heal --forget {remedy.issue}",
            )
