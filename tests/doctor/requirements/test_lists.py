"""Lists of Python packages in each form, read line by line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.doctor.requirements.lists import MOST_BYTES, MOST_ENTRIES, Entry, read_list

PIP = """# a comment
torch==2.1.2+cu118 torchvision==0.16.2+cu118 --extra-index-url https://example.org/whl/cu118
numpy>=1.25 ; python_version >= "3.9"   # why
requests[socks] \\
    ==2.32.0 --hash=sha256:00
-r more/base.txt
-r ../outside.txt
-e .
https://example.org/flash_attn-2.7.4%2Bcu12torch2.6-cp312-cp312-linux_x86_64.whl
git+https://example.org/CLIP.git@main
thing @ https://example.org/thing-1.0+rocm6.4-py3-none-any.whl
)not a requirement
"""
CONDA = """name: x
channels:
  - nvidia
dependencies:
  - python=3.11
  - pytorch::pytorch=2.3.0=py3.11_cuda12   # with a build
  - cudatoolkit>=11
  - pip
  - pip:
    - accelerate==1.0
    - --extra-index-url https://example.org/whl/cu121
    - "bitsandbytes"
  - numpy
prefix: /opt/x
"""
PROJECT = """[project]
dependencies = ["torch>=2", "numpy"]
[project.optional-dependencies]
gpu = ["xformers"]
[dependency-groups]
dev = ["pytest", { include-group = "docs" }]
[[tool.uv.index]]
url = "https://example.org/whl/cu121"
"""
LOCK = """version = 1
[[package]]
name = "mine"
version = "0.1"
source = { editable = "." }
[[package]]
name = "torch"
version = "2.5.1+cu121"
source = { registry = "https://example.org/whl/cu121" }
"""


def lines(entries: list[Entry]) -> list[tuple[str, str, str]]:
    return [(entry.place, entry.name or entry.option or entry.problem, entry.pin) for entry in entries]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_list_of_pip_has_its_packages_options_and_included_lists(tmp_path: Path) -> None:
    (tmp_path / "list/more").mkdir(parents=True)
    written(tmp_path, "outside.txt", "secret==1.0\n")
    written(tmp_path / "list/more", "base.txt", "einops==0.7\n-r base.txt\n")
    entries = read_list(written(tmp_path / "list", "requirements.txt", PIP), "gfx1151")
    assert lines(entries) == [
        ("2", "torch", "2.1.2+cu118"),
        ("2", "torchvision", "0.16.2+cu118"),
        ("2", "--extra-index-url", ""),
        ("3", "numpy", ""),
        ("5", "requests", "2.32.0"),
        ("more/base.txt:1", "einops", "0.7"),
        ("7", "not read: it is not a list in this folder", ""),
        ("8", "-e", ""),
        ("9", "flash-attn", "2.7.4+cu12torch2.6"),
        ("10", "clip", ""),
        ("11", "thing", "1.0+rocm6.4"),
        ("12", "not read: it is no requirement", ""),
    ]


def test_an_environment_of_conda_has_its_own_packages_and_those_of_pip(tmp_path: Path) -> None:
    entries = read_list(written(tmp_path, "environment.yml", CONDA), "gfx1151")
    assert [(entry.place, entry.name or entry.option, entry.conda) for entry in entries] == [
        ("5", "python", True),
        ("6", "pytorch", True),
        ("7", "cudatoolkit", True),
        ("8", "pip", True),
        ("10", "accelerate", False),
        ("11", "--extra-index-url", False),
        ("12", "bitsandbytes", False),
        ("13", "numpy", True),
    ]
    flow = written(tmp_path, "flow.yaml", "dependencies: [numpy, torch]\n")
    with pytest.raises(InputError, match="no list of Python packages"):
        read_list(flow, "gfx1151")


@each(
    ("name", "text", "named"),
    [
        ("pyproject.toml", PROJECT, ["torch", "numpy", "xformers", "pytest", "--extra-index-url"]),
        ("uv.lock", LOCK, ["torch"]),
        ("pylock.toml", LOCK.replace("[[package]]", "[[packages]]"), ["torch"]),
    ],
)
def test_projects_and_locks_are_read(tmp_path: Path, name: str, text: str, named: list[str]) -> None:
    entries = read_list(written(tmp_path, name, text), "gfx1151")
    assert [entry.name or entry.option for entry in entries] == named
    assert all(entry.place.isdigit() for entry in entries)


@each(
    ("name", "data", "cause"),
    [
        ("x.whl", b"anything", "it is a wheel, an archive or a library"),
        ("x.txt", b"PK\3\4rest", "it is a wheel, an archive or a library"),
        ("x.txt", b"\x7fELFrest", "it is a wheel, an archive or a library"),
        ("x.txt", b"\xff\xfe", "it is not UTF-8 text"),
        ("x.txt", b"", "it names no package in a form read here"),
        ("x.toml", b"[", "it is not TOML: "),
        ("x.toml", b"[tool.poetry.dependencies]\ntorch = '2'\n", "it names no package in a form read here"),
        ("x.md", b"# Title\n\nSome prose, here.\n", "line 3 is no requirement"),
        ("x.txt", b"a\n" * (MOST_ENTRIES + 1), "it has more than 5,000 entries"),
        ("x.txt", b"#" * (MOST_BYTES + 1), "it has more than 4,194,304 bytes"),
    ],
)
def test_what_is_no_list_is_refused_with_its_cause(
    tmp_path: Path, name: str, data: bytes, cause: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_list(path, "gfx1151")
    assert caught.value.cause.startswith(cause)
    if "wheel" in cause:
        assert caught.value.next_step == f"rocwright wheel check-gpu gfx1151 {path}"


@given(st.sampled_from(["x.txt", "x.yml", "x.toml", "x.lock"]), st.text(max_size=400))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(InputError):
        assert all(entry.place for entry in read_list(path, "gfx1151") if entry.requirement)
