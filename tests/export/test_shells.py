"""Quoting for each shell: what is set is what was meant, and nothing in it is run."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.export.shells import Shell, assignment, comment, quoted

WORD = st.text(
    st.characters(min_codepoint=0x20, blacklist_characters="\x7f", blacklist_categories=["Cs", "Cc"])
)
NASTY = "it's \"$HOME\" `id` $(id) \\ ! # ; & | * ~ \u2019 ' ''"


@each(
    ("shell", "line"),
    [
        (Shell.BASH, r"export A='it'\''s $B \ '"),
        (Shell.FISH, r"set --export --global A 'it\'s $B \\ '"),
        (Shell.NU, r'$env.A = "it' + r"'s $B \\ " + '"'),
        (Shell.POWERSHELL, r"$env:A = 'it''s $B \ '"),
    ],
)
def test_a_variable_is_set_in_the_words_of_each_shell(shell: Shell, line: str) -> None:
    assert assignment("A", r"it's $B \ ", shell) == line


def test_plain_text_is_quoted_plainly_everywhere() -> None:
    assert {quoted("11.0.3", shell) for shell in Shell} == {"'11.0.3'"}


def test_the_typographic_quotes_of_powershell_are_doubled() -> None:
    assert quoted("a\u2019b", Shell.POWERSHELL) == "'a\u2019\u2019b'"


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\x00", "\x1b[31m", "\x7f"])
def test_control_characters_are_refused(shell: Shell, text: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        quoted(text, shell)


def test_a_comment_is_one_line() -> None:
    assert comment("a\nrm -rf /\r\n b") == "# a rm -rf / b"


def _value_in(argv: list[str], script: str) -> str:
    done = subprocess.run(
        [*argv, script], capture_output=True, check=True, timeout=60, env={"PATH": "/usr/bin:/bin"}
    )
    return done.stdout.decode()


@settings(max_examples=60, deadline=None)
@given(text=WORD)
def test_bash_reads_back_any_text(text: str) -> None:
    assert _value_in(["bash", "-c"], f'{assignment("A", text, Shell.BASH)}\nprintf %s "$A"') == text


@pytest.mark.parametrize(
    ("shell", "argv", "tell"),
    [
        (Shell.BASH, ["sh", "-c"], 'printf %s "$A"'),
        (Shell.BASH, ["zsh", "-c"], 'printf %s "$A"'),
        (Shell.FISH, ["fish", "-c"], "printf %s $A"),
        (Shell.NU, ["nu", "-c"], "print --no-newline $env.A"),
        (Shell.POWERSHELL, ["pwsh", "-NoProfile", "-Command"], "[Console]::Out.Write($env:A)"),
    ],
)
def test_a_shell_that_is_here_reads_back_nasty_text(shell: Shell, argv: list[str], tell: str) -> None:
    program = shutil.which(argv[0])
    if program is None:
        pytest.skip(f"{argv[0]} is not installed")
    assert _value_in([program, *argv[1:]], f"{assignment('A', NASTY, shell)}\n{tell}") == NASTY


def _read_back(word: str, shell: Shell) -> str:
    """What a quoted word means, read character by character as the shell's manual says; None left over."""
    quote, out, rest = word[0], "", list(word[1:])
    while rest:
        one = rest.pop(0)
        if shell is Shell.POWERSHELL and one in "'\u2018\u2019\u201a\u201b":
            if not rest:
                return out
            assert rest.pop(0) == one, "the word ends before its end"
        elif one == quote:
            assert not rest, "the word ends before its end"
            return out
        elif one == "\\" and (shell is Shell.FISH or quote == '"'):
            following = rest.pop(0)
            assert following in "\\'\""
            one = following
        out += one
    raise AssertionError("the word does not end")


@given(text=WORD, shell=st.sampled_from([Shell.FISH, Shell.NU, Shell.POWERSHELL]))
def test_a_quoted_word_reads_back_by_the_rules_of_its_shell(text: str, shell: Shell) -> None:
    assert _read_back(quoted(text, shell), shell) == text
