"""Values of strangers stay values in every syntax that an export is written in."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import lock_of

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.export import quote
from rocwright.export.model import ExportSubject, Files
from rocwright.export.pipeline import VERSIONS
from rocwright.export.read_back import read_versions
from rocwright.export.write import FORMATS

NASTY = st.text(
    st.sampled_from(list("aA1 \n\r\t\0'\"\\$`;|&<>(){}[]%#!*?~=:,.-\u2019\u2028\u0085/@")), max_size=20
) | st.text(max_size=20)

HOSTILE = (
    "1.0\nRUN touch /owned",
    "1.0'; touch /owned; '",
    '1.0"; touch /owned; "',
    "$(touch /owned)",
    "`touch /owned`",
    "1.0\\",
    "%H ${HOME} {{ .Values }} ${{ secrets.TOKEN }}",
    "1.0\u2019; Remove-Item x; \u2019",
)

QUOTED = ("LABEL ", "    echo ", "[ -n ", "if (-not ", "|", "> ", "Taken", "Exported by")
"""How lines begin that hold a value in quotes, or in Markdown."""


@given(NASTY)
def test_a_comment_is_one_line(text: str) -> None:
    assert len(f"# {quote.comment(text)}".splitlines()) == 1


@given(NASTY.filter(lambda text: "\0" not in text))
@settings(max_examples=60, deadline=None)
def test_a_shell_reads_the_same_value(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    done = subprocess.run(
        ["/bin/sh", "-c", f"printf %s {quote.shell(text)}"], capture_output=True, check=True
    )
    assert done.stdout == text.encode()
    assert shlex.split(quote.shell(text)) == [text]


def parse_docker(value: str) -> str:
    """A double-quoted word of a Containerfile: a backslash takes the next sign as it is."""
    assert value[0] == value[-1] == '"'
    found, rest = "", value[1:-1]
    while rest:
        assert rest[0] not in '"$'
        if rest[0] == "\\":
            rest = rest[1:]
        found, rest = found + rest[0], rest[1:]
    return found


@given(NASTY)
def test_a_containerfile_expands_nothing(text: str) -> None:
    try:
        value = quote.docker(text)
    except InputError:
        return
    assert len(value.splitlines()) == 1
    assert parse_docker(value) == text


@given(NASTY)
def test_a_unit_keeps_a_value_in_one_word(text: str) -> None:
    try:
        word, value = quote.unit(text), quote.unit_value(text)
    except InputError:
        return
    assert len(word.splitlines()) == 1
    plain = re.sub(r"\\(.)", r"\1", value[1:-1]).replace("%%", "%")
    assert plain == text
    assert not re.search(r'(?<!\\)(\\\\)*"', value[1:-1].replace('\\"', ""))
    assert "$" not in word.replace("$$", "")
    assert "%" not in word.replace("%%", "")


@given(NASTY)
def test_yaml_reads_what_json_reads(text: str) -> None:
    scalar = quote.yaml(text)
    assert len(scalar.splitlines()) == 1
    assert json.loads(scalar.replace("\\x7f", "\\u007f")) == text


@given(NASTY)
def test_powershell_ends_a_string_where_it_should(text: str) -> None:
    try:
        value = quote.powershell(text)
    except InputError:
        return
    assert len(value.splitlines()) == 1
    inner = value[1:-1]
    assert re.fullmatch(r"(?:[^'\u2018-\u201b]|([\u2018-\u201b'])\1)*", inner)


@each("hostile", HOSTILE)
def test_hostile_locks_break_out_of_nothing(hostile: str) -> None:
    lock = lock_of("gfx-smoke")
    (one,) = lock.components
    harmless = exported(ExportSubject.of(lock, builtin_catalog(), {"gfx-smoke": b""}))
    changed = one.model_copy(update={"place": hostile, "commit": hostile, "pending": hostile})
    subject = ExportSubject(
        lock.model_copy(update={"components": (changed,), "created": hostile}),
        builtin_catalog(),
        ExportSubject.of(lock, builtin_catalog()).plan,
        {"gfx-smoke": b""},
    )
    for name, file in exported(subject).items():
        if name.endswith(".sh"):
            done = subprocess.run(["/bin/sh", "-n"], input=file.data, capture_output=True, check=False)
            assert done.returncode == 0, (name, done.stderr)
        commands = [line for line in file.text.splitlines() if code(line)]
        told = {line for line in commands if "touch /owned" in line or "Remove-Item" in line}
        for line in told:
            # it stands inside of quotes there, or not at all
            assert line.startswith(
                ("LABEL ", "    echo ", "[ -n ", "if (-not ", "|", "> ", "Taken", "Exported by")
            ), (name, line)
        assert len(commands) <= len([one for one in harmless[name].text.splitlines() if code(one)]) + 12


def code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def exported(subject: ExportSubject) -> Files:
    found: Files = {}
    for name, make in FORMATS.items():
        # what cannot be written on one line is refused, and nothing of that format is written
        with contextlib.suppress(InputError):
            found |= {f"{name}/{path}": file for path, file in make(subject).items()}
    return {name: file for name, file in found.items() if not name.endswith((".zst", ".tar"))}


def test_a_version_that_is_not_plain_is_not_written_into_versions_env() -> None:
    lock = lock_of("gfx-smoke")
    for hostile in HOSTILE:
        request = lock.request.model_copy(update={"gpu": (hostile,)})
        subject = ExportSubject(
            lock.model_copy(update={"request": request}),
            builtin_catalog(),
            ExportSubject.of(lock, builtin_catalog()).plan,
            {},
        )
        with pytest.raises(InputError):
            FORMATS["pipeline"](subject)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    files = FORMATS["pipeline"](ExportSubject.of(lock_of("gfx-smoke"), builtin_catalog(), {"gfx-smoke": b""}))
    (tmp_path / VERSIONS).write_bytes(files[VERSIONS].data)
    assert read_versions(tmp_path / VERSIONS)["GFX_SMOKE_VERSION"] == "0.1.0"
