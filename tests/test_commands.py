"""Each command in a message, hint, page, docstring or template is one that the real command tree takes."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner
from markupsafe import Markup

from rocbase.errors import ExplainedError
from rocwheel.cli.group import cli as rocwheel
from rocwright.catalog.load import the_catalog
from rocwright.cli import VERBS, place
from rocwright.cli.build_report import next_steps
from rocwright.cli.group import cli as rocwright
from rocwright.cli.tell import tell_any
from rocwright.home import Home
from rocwright.plan.resolve.files import write_lock
from rocwright.plan.resolve.shipped import request_of, rows
from rocwright.project import project_of
from tests.making import lock_of

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "src", *ROOT.glob("packages/*/src"))
SOURCES = [path for folder in FOLDERS for path in sorted(folder.rglob("*"))]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "packages/rocwheel/README.md"]
FORMS = [ROOT / "action.yml", *(ROOT / ".github").rglob("*.yml")]
PROGRAMS = {"rocwright": rocwright, "rocwheel": rocwheel}
STACKS = {*the_catalog().stacks}
STANDS_FOR = re.compile(r"[A-Z][A-Z0-9_-]*|.*(\.\.\.|PLACEHOLDER|<|\$).*")
"""Words in a command that stand for what the reader has: STACK, FILE, $KEY, a place of an f-string."""
ARGUMENT = re.compile(r"-.*|.*[A-Z0-9_./:=*{}<$-].*")
"""Words that are an argument in the middle of a sentence, not its next word."""


class Found(NamedTuple):
    """A command and where it is printed: whether its end is marked, and whether it is typed as it is."""

    place: str
    text: str
    exact: bool
    typed: bool = False


def in_text(place: str, text: str, typed: bool = False) -> Iterator[Found]:
    """Yield the commands in a message: exact ones in backticks, the others up to the next word of prose."""
    spans = re.findall(r"`([^`]+)`", text)
    yield from (Found(place, span, True, typed) for span in spans if re.match(r"roc(wright|wheel)\s", span))
    text = re.sub(r"`[^`]*`", "", text)
    for match in re.finditer(r"(?<![\w./-])(roc(?:wright|wheel)) ([\w-]+)[^\n`;,()|&]*", text):
        program = PROGRAMS[match[1]]
        begins = re.search(r"(^|[:;] |\brun |\bor )$", text[: match.start()])
        if (typed and begins) or program.get_command(click.Context(program), match[2]):
            yield Found(place, match[0], False, typed)


def in_python(place: str, text: str) -> Iterator[Found]:
    tree = ast.parse(text)
    steps = [
        each.value for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg == "next_step"
    ]
    typed = {node for value in steps for node in ast.walk(value)}
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        where = f"{place}:{getattr(node, 'lineno', 0)}"
        match node:
            case ast.JoinedStr(values=values):
                inside.update(values)
                parts = (
                    str(part.value) if isinstance(part, ast.Constant) else "PLACEHOLDER" for part in values
                )
                yield from in_text(where, "".join(parts), node in typed)
            case ast.Constant(value=str(value)) if node not in inside:
                yield from in_text(where, value, node in typed)


def in_toml(place: str, text: str) -> Iterator[Found]:
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                yield from texts(each)
        elif isinstance(value, str):
            yield value

    for value in texts(tomllib.loads(text)):
        yield from in_text(place, value)


def in_page(place: str, text: str) -> Iterator[Found]:
    """Yield what a page has in backticks, where a verb may stand without its program, and in its blocks."""
    text = re.sub(r"\\\n\s*", " ", text)
    for block in re.findall(r"(?ms)^ *```.*?^ *```", text):
        prompt = r"\$ " if "$ roc" in block else ""
        for match in re.finditer(rf"^\s*{prompt}(roc(?:wright|wheel) .*)", block, re.MULTILINE):
            yield Found(place, match[1], True, True)
        text = text.replace(block, "")
    for span in re.findall(r"`([^`]+)`", text):
        first, second = [*span.split(), "=", "="][:2]
        if second != "=" and (first in PROGRAMS or first in VERBS):
            yield Found(place, span if first in PROGRAMS else f"rocwright {span}", True)


def in_template(place: str, text: str) -> Iterator[Found]:
    text = re.sub(r"(?s){%.*?%}", "", re.sub(r"(?s){{.*?}}", "PLACEHOLDER", text))
    text = re.sub(r"(?s)<code>(.*?)</code>", r"`\1`", text)
    yield from in_text(place, Markup(re.sub(r"(?s)<[^>]*>", "", text)).unescape())


READERS = {".py": in_python, ".toml": in_toml, ".html": in_template, ".md": in_page, ".yml": in_text}


def all_commands() -> Iterator[Found]:
    for path in (*SOURCES, *PAGES, *FORMS):
        if path.suffix in READERS:
            yield from READERS[path.suffix](str(path.relative_to(ROOT)), path.read_text())


def words_of(found: Found) -> list[str]:
    """Return the words of a command; of one in a sentence, those that look like verbs and arguments."""
    text = re.split(r" \| | &&|\s#|;|\s>|\s{4,}", found.text)[0]
    if found.exact:
        # [OPTIONAL ..], as in a line of usage
        return shlex.split(re.sub(r"[][]|(?<=\])\.+| \.\.(?=[]\s])", " ", text) if "[" in text else text)
    text = text.split(": ")[0]
    words = shlex.split(text if text.count("'") % 2 == 0 else text.rpartition("'")[0])
    command: click.Command = PROGRAMS[words[0]]
    kept, takes = [words[0]], False
    for word in (word.rstrip(".,:") for word in words[1:]):
        if isinstance(command, click.Group) and not takes and not word.startswith("-"):
            verb = command.get_command(click.Context(command), word)
            if verb is None:
                return [*kept, word] if len(kept) == 1 else kept
            command = verb
        elif not (takes or ARGUMENT.fullmatch(word) or word in choices(command)):
            break
        kept.append(word)
        options = [each for each in command.params if isinstance(each, click.Option) and word in each.opts]
        takes = any(not each.is_flag and not each.count for each in options)
    return kept


def choices(command: click.Command) -> set[str]:
    """Return the plain words that an argument of a command can be: those of its type, and names of stacks."""
    types = [each.type for each in command.params if isinstance(each, click.Argument)]
    return {word for each in types if isinstance(each, click.Choice) for word in each.choices} | STACKS


_judged = click.Parameter.process_value


def _taken(self: click.Parameter, context: click.Context, value: Any) -> Any:
    """Take a word that stands for another, and a path that may not exist here; judge all other values."""
    words = value if isinstance(value, list | tuple) else [value]
    if isinstance(self.type, click.Path | click.File) or any(
        STANDS_FOR.fullmatch(str(word)) for word in words
    ):
        return value
    return _judged(self, context, value)


def parsed(words: list[str]) -> click.Context:
    """Return what the command tree makes of the words. Raises click.ClickException if it refuses them."""
    rest = [word for word in words[1:] if word not in ("-h", "--help")]
    asks = len(rest) < len(words) - 1
    command: click.Command = PROGRAMS[words[0]]
    context: click.Context | None = None
    with patch.object(click.Parameter, "process_value", _taken):
        while True:
            context = command.make_context(words[0], rest[:], parent=context, resilient_parsing=asks)
            rest = [*context._protected_args, *context.args]
            if not isinstance(command, click.Group) or not rest or STANDS_FOR.fullmatch(rest[0]):
                return context
            _, verb, rest = command.resolve_command(context, rest)
            assert verb is not None
            command = verb


def fault(words: list[str], placed: bool = False) -> str:
    """Return why the command tree refuses the words, or "". `placed`: they are typed where no project is."""
    try:
        context = parsed(words)
    except (click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        return ""
    except click.ClickException as error:
        return error.format_message()
    lacks = takes_a_project(context.command) and not (context.params["stack"] or context.params.get("suites"))
    return "there is no project here, and no stack is named" if placed and lacks else ""


def takes_a_project(command: click.Command) -> bool:
    names = {each.name for each in command.params}
    return {"stack", "accept_missing"} <= names and command.name not in ("init", "run")


def is_name(words: list[str], why: str) -> bool:
    """Return whether the words only name a verb, or an option of it, in a sentence that speaks of that."""
    plain = all(re.fullmatch(r"[a-z-]+", word) for word in words)
    return plain and ("requires an argument" in why or why.startswith("Missing "))


def test_each_command_parses() -> None:
    faults = set()
    for found in all_commands():
        # check|schema is one of each
        either = (word.split("|") if re.fullmatch(r"[a-z|-]+", word) else [word] for word in words_of(found))
        for words in map(list, product(*either)):
            if (why := fault(words)) and (found.typed or not is_name(words, why)):
                faults.add(f"{found.place}: {' '.join(words)}: {why}")
    assert faults == set()


def verbs(group: click.Group = rocwright, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from verbs(command, f"{path}{name} ")


def test_the_help_of_a_group_names_verbs_that_it_has() -> None:
    for name, command in verbs():
        words = VERBS.get(name, "").rpartition(": ")[2].rstrip(".").split(", ")
        own = {*command.list_commands(click.Context(command))} if isinstance(command, click.Group) else set()
        if own & {*words} and all(word.isalpha() for word in words):
            assert {*words} <= own, name


def test_each_make_target_tool_extra_and_archive_is_there() -> None:
    targets = {*re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = {path: path.read_text() for path in (*SOURCES, *PAGES, *FORMS) if path.suffix in READERS}
    own = [text for path, text in texts.items() if path.suffix == ".py" or path in (*PAGES, *FORMS)]
    joined = "\n".join(own)
    made = {*re.findall(r"(?:`|^\$? ?|run: )make ([a-z-]+)[ `\n]", joined, re.MULTILINE)}
    assert made <= targets, made - targets
    tools = {*re.findall(r"(?<![\w/.-])tools/\w+(?:\.\w+)?", joined)}
    assert [name for name in tools if not (ROOT / name).exists()] == []
    # no index has the packages: they are installed from a checkout
    everything = "\n".join(texts.values())
    assert re.findall(r"pip install (?:-\S+ )*'?roc(?:wright|wheel)(?![-\w/])", everything) == []
    assert {*re.findall(r"pip install .*?'\.\[(\w+)\]'", joined)} == {*extras}
    assert re.findall(r"tar xf (?!rocwright-out/)\S+", "\n".join(map(Path.read_text, PAGES))) == []


def test_a_message_is_completed_for_each_verb_that_takes_a_stack() -> None:
    before = {
        name: [each.name for each in command.params if isinstance(each, click.Argument)].index("stack")
        for name, command in verbs()
        if takes_a_project(command)
    }
    assert before == dict.fromkeys(place.FIRST, 0) | dict.fromkeys(place.SECOND, 1)


def test_the_steps_after_a_build_name_the_stack_that_was_built(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stack, row in rows(the_catalog()):
        request = request_of(stack, row)
        monkeypatch.setattr(place, "_asked", request.words)
        text = next_steps(project_of(request, tmp_path, home), verified=False)
        told = {each.text: fault(words_of(each), placed=True) for each in in_text(stack.name, text)}
        assert {*told.values()} == {""}, told
        assert f"rocwright verify {shlex.join(request.words)}" in text
        assert "python3 -m" not in text, "the host's Python may be another than the wheels'"


LOCK = lock_of("gfx-smoke")
ASKED = [
    *("bench", "plan", "export run", "farm explain root/x", "farm verify", "heal", "heal --forget x", "logs"),
    *("install --into v", "patch save root/x", "reproduce", "sbom", "shell root/x", "store pull", "verify"),
    *("store push --to file:///nowhere/x", "why root/x", "shell gfx-smoke"),
]
ALONE = [
    *("attest x", "build", "bump", "clean", "cycle", "env", "heal", "history", "install --into v", "lock"),
    *("logs", "notify status", "plan", "promote", "ps", "records check", "rehearse x", "report", "sandbox"),
    *("stacks", "store usage", "targets", "verify", "watch", "why x", "shell x", "import x"),
]


def test_each_command_that_is_printed_where_no_project_is_can_be_typed_there(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    monkeypatch.chdir(tmp_path)
    write_lock(project_of(LOCK.request, tmp_path, home).lock_path, LOCK)
    faults, count = [], 0
    for line in [*(f"{line} {shlex.join(LOCK.request.words)}" for line in ASKED), *ALONE]:
        ended = CliRunner().invoke(rocwright, shlex.split(line))
        if isinstance(ended.exception, ExplainedError):
            tell_any(ended.exception)
        for found in in_text(line, ended.output + capfd.readouterr().err, typed=True):
            count += 1
            words = words_of(found)
            why = fault(words, placed=True)
            if why or ("STACK" in words and LOCK.request.stack in line):
                faults.append(f"{line}: {found.text}: {why or 'the stack that was named is not named'}")
    assert faults == []
    assert count > 30
