"""Models of a hub: brought whole or not at all, taken up again, and one message for each refusal."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.models.hub import COMMIT, REPOSITORY, FakeHub, serving
from tests.sources.test_pace import BODY, HEADERS, TRAILER, dripping

from rocbase.errors import CheckError, ExplainedError, FetchError, InputError, NetworkError
from rocwright.execution.progress import PlainProgress
from rocwright.home import Home
from rocwright.serving.models import bounded
from rocwright.serving.models.find import find_model
from rocwright.serving.models.model import Model
from rocwright.verify.tiny_gguf import write_tiny_model

TOKEN = "hf_secretsecretsecretsecretsecretse"


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    write_tiny_model(path)
    return path.read_bytes()


def safetensors() -> bytes:
    said = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(said)) + said + b"abcd"


@pytest.fixture
def hub(gguf: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)  # the models are small
    with serving(FakeHub({"model-Q8_0.gguf": gguf, "README.md": b"words"})) as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        yield found


class Wanted:
    """Asks for models with a home of its own, and keeps what was said."""

    def __init__(self, home: Path) -> None:
        self.home, self.said = Home(home), list[str]()

    def __call__(self, words: str, *kinds: str, trust: bool = False) -> Model:
        return find_model(
            words,
            kinds or ("gguf",),
            home=self.home,
            trust=trust,
            say=self.said.append,
            progress=PlainProgress(),
        )

    def refused(self, words: str, *kinds: str) -> ExplainedError:
        with pytest.raises(ExplainedError) as error:
            self(words, *kinds)
        assert error.value.cause and error.value.next_step
        assert TOKEN not in f"{error.value.as_dict()} {self.said}"
        return error.value


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    return Wanted(tmp_path / "home")


FILE = f"hf:{REPOSITORY}/model-Q8_0.gguf"


def test_a_file_is_brought_and_its_hash_is_known(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    found = wanted(FILE)
    assert found.path.read_bytes() == gguf
    assert found.sha256 == hub.mark("model-Q8_0.gguf")
    assert found.origin == f"hf:{REPOSITORY}@{COMMIT}/model-Q8_0.gguf"
    assert found.head is not None and found.head.architecture == "llama"


def test_what_is_here_is_served_without_asking(hub: FakeHub, wanted: Wanted) -> None:
    wanted(FILE)
    asked = len(hub.asked)
    assert wanted(FILE).sha256 == hub.mark("model-Q8_0.gguf")
    assert len(hub.asked) == asked


def test_a_line_that_breaks_is_taken_up_within_one_run(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.cut_after = [500_000, 400_000]
    assert wanted(FILE).path.read_bytes() == gguf
    ranges = [one[2] for one in hub.asked if one[0] == "GET" and "resolve" in one[1]]
    assert ranges == ["", "bytes=500000-", "bytes=900000-"]


def test_the_next_run_goes_on_where_the_last_one_ended(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.cut_after = [700_000] + [0] * 20
    error = wanted.refused(FILE)
    assert isinstance(error, NetworkError) and "taken up" in error.next_step
    hub.cut_after, hub.asked = [], []
    assert wanted(FILE).path.read_bytes() == gguf
    ranges = [one[2] for one in hub.asked if one[0] == "GET" and "resolve" in one[1]]
    assert ranges == ["bytes=700000-"]


def test_other_bytes_than_the_hub_says_are_refused_and_removed(
    hub: FakeHub, wanted: Wanted, gguf: bytes
) -> None:
    hub.sends["model-Q8_0.gguf"] = gguf[:-1] + b"\1"
    error = wanted.refused(FILE)
    assert isinstance(error, FetchError) and "not what the hub says" in error.message
    assert not [one for one in wanted.home.models.rglob("*") if one.suffix in (".gguf", ".part")]


def test_a_hub_that_sends_more_than_it_said_fills_no_disk(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.sends["model-Q8_0.gguf"] = gguf * 40
    error = wanted.refused(FILE)
    assert isinstance(error, FetchError) and "sends more than" in error.message
    assert sum(one.stat().st_size for one in wanted.home.models.rglob("*.part")) <= len(gguf)
    hub.sends.clear()
    assert wanted(FILE).path.read_bytes() == gguf


@pytest.mark.parametrize(
    ("status", "encoding"), [(200, "gzip"), (200, "identity"), (302, "identity"), (401, "identity")]
)
def test_an_answer_without_end_fills_no_memory(
    hub: FakeHub, wanted: Wanted, status: int, encoding: str
) -> None:
    hub.floods = (status, encoding)
    for words in (FILE, f"hf:{REPOSITORY}"):
        error = wanted.refused(words)
        assert isinstance(error, FetchError) and "answer of the hub" in error.message
    assert hub.flooded < 100 or encoding == "gzip"


@pytest.mark.parametrize("begin", [HEADERS, BODY, TRAILER], ids=["headers", "body", "trailer"])
def test_a_hub_that_drips_is_given_up(
    hub: FakeHub, wanted: Wanted, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "LONGEST_READ", 0.5)
    monkeypatch.setattr(bounded, "WINDOW", 0.5)
    began = time.monotonic()
    with dripping(begin, None) as url:
        hub.moved_to = url
        wanted.refused(FILE)
    assert time.monotonic() - began < 60


def test_a_token_is_sent_and_never_told(
    hub: FakeHub, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.needs_token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert wanted(FILE).format == "gguf"
    assert set(hub.tokens) == {f"Bearer {TOKEN}"}


def test_a_token_that_is_wrong_is_never_told(
    hub: FakeHub, wanted: Wanted, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.needs_token = "another"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    error = wanted.refused(FILE)
    assert "the token is not valid" in error.cause and "hf auth login" in error.next_step
    assert TOKEN not in "".join(capfd.readouterr())


def test_a_token_is_not_sent_to_another_host(
    hub: FakeHub, wanted: Wanted, monkeypatch: pytest.MonkeyPatch, gguf: bytes
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with serving(FakeHub(hub.files)) as store:
        hub.moved_to = store.url
        assert wanted(FILE).path.read_bytes() == gguf
    assert set(hub.tokens) == {f"Bearer {TOKEN}"}
    assert [one[0] for one in store.asked] == ["GET"] and store.tokens == [""]


def test_without_a_network_what_was_brought_of_a_repository_is_served(
    hub: FakeHub, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = wanted(f"hf:{REPOSITORY}")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert wanted(f"hf:{REPOSITORY}").path == first.path
    assert "cannot be brought" in wanted.said[-1]


def test_a_gated_repository_says_what_to_do(hub: FakeHub, wanted: Wanted) -> None:
    hub.gated = True
    error = wanted.refused(FILE)
    assert isinstance(error, InputError) and "gated" in error.message
    assert "ask for access" in error.next_step and "HF_TOKEN" in error.next_step


def test_a_private_repository_may_not_be_there(hub: FakeHub, wanted: Wanted) -> None:
    hub.private = True
    error = wanted.refused(FILE)
    assert "no repository" in error.message and "if it is private" in error.next_step


def test_a_file_that_is_not_there_names_the_nearest(hub: FakeHub, wanted: Wanted) -> None:
    error = wanted.refused(f"hf:{REPOSITORY}/model-Q8.gguf")
    assert "has no file model-Q8.gguf" in error.message
    assert "model-Q8_0.gguf" in error.cause


def test_a_hub_that_cannot_be_reached_is_one_message(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://someone:password@127.0.0.1:1")
    error = wanted.refused(FILE)
    assert isinstance(error, NetworkError) and "cannot be brought from 127.0.0.1" in error.message
    assert "HF_ENDPOINT" in error.next_step
    assert "password" not in str(error.as_dict()) + "".join(capfd.readouterr())


def test_a_hub_at_no_address_is_told(wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://someone:password@[")
    error = wanted.refused(FILE)
    assert isinstance(error, InputError) and error.message == "HF_ENDPOINT: 'http://[' is not an address"


def test_the_only_model_of_a_repository_is_taken(hub: FakeHub, wanted: Wanted) -> None:
    assert wanted(f"hf:{REPOSITORY}").path.name == "model-Q8_0.gguf"


def test_of_several_models_one_must_be_named(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.files["model-F32.gguf"] = gguf
    error = wanted.refused(f"hf:{REPOSITORY}")
    assert "several models" in error.message
    assert "model-F32.gguf" in error.cause and "model-Q8_0.gguf" in error.cause


def test_a_folder_is_brought_without_its_pickles(hub: FakeHub, wanted: Wanted) -> None:
    hub.files = {
        "config.json": b"{}",
        "model.safetensors": safetensors(),
        "pytorch_model.bin": b"PK\3\4",
        "code.py": b"import os",
    }
    hub.plain = {"config.json"}
    found = wanted(f"hf:{REPOSITORY}", "transformers")
    assert found.format == "transformers"
    assert sorted(one.name for one in found.path.iterdir() if one.name[0] != ".") == [
        "config.json",
        "model.safetensors",
    ]


def test_pickled_weights_are_refused_before_they_are_brought(hub: FakeHub, wanted: Wanted) -> None:
    hub.files |= {"old.ckpt": b"PK\3\4", "old.safetensors": safetensors()}
    error = wanted.refused(f"hf:{REPOSITORY}/old.ckpt", "safetensors", "pickled")
    assert "old.safetensors" in error.next_step and "--trust-model" in error.next_step
    assert not [one for one in hub.asked if "old.ckpt" in one[1]]


def test_pickled_weights_that_the_stack_does_not_take_are_refused_before_they_are_brought(
    hub: FakeHub, wanted: Wanted
) -> None:
    hub.files |= {"old.ckpt": b"PK\3\4", "old.safetensors": safetensors()}
    error = wanted.refused(f"hf:{REPOSITORY}/old.ckpt", "gguf")
    assert error.cause.endswith("this stack takes GGUF") and "--trust-model" not in error.next_step
    assert not [one for one in hub.asked if "old.ckpt" in one[1]]


def test_all_files_of_a_split_model_are_brought(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.files = {f"m/big-0000{number}-of-00002.gguf": gguf for number in (1, 2)}
    found = wanted(f"hf:{REPOSITORY}")
    assert [one.name for one in found.paths] == ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"]
    assert found.size == 2 * len(gguf)


def test_a_model_that_the_hub_has_damaged_is_refused(hub: FakeHub, wanted: Wanted, gguf: bytes) -> None:
    hub.files["model-Q8_0.gguf"] = gguf[:-1000]
    assert isinstance(wanted.refused(FILE), CheckError)


@pytest.mark.parametrize(
    "words",
    [
        "hf:",
        "hf:name",
        "hf:a/b/../../c",
        "hf:../b",
        "hf:a/b@../c/d",
        "hf:a/b//c",
        "hf:a/..",
        "hf:a/b/c\\d",
        "hf:a b/c",
        "hf:a/b@x/y\n",
    ],
)
def test_an_address_that_names_nothing_is_refused(words: str, wanted: Wanted) -> None:
    assert "names no model of a hub" in wanted.refused(words).message


def test_names_that_would_leave_the_folder_are_not_brought(hub: FakeHub, wanted: Wanted) -> None:
    hub.files = {"config.json": b"{}", "model.safetensors": safetensors(), "../../evil.json": b"{}"}
    found = wanted(f"hf:{REPOSITORY}", "transformers")
    assert not [one for one in wanted.home.path.rglob("*") if "evil" in one.name]
    assert found.path.is_dir()


@pytest.mark.parametrize("words", [f"hf:{REPOSITORY}/model-Q8_0.gguf", f"hf:{REPOSITORY}", "tiny"])
def test_a_dry_run_takes_a_model_that_is_here_and_brings_none(
    hub: FakeHub, wanted: Wanted, words: str
) -> None:
    def looked_at() -> Model:
        return find_model(words, ("gguf",), home=wanted.home, bring=False, say=pytest.fail)

    with pytest.raises(InputError, match="is not on this machine yet"):
        looked_at()
    assert not hub.asked and not wanted.home.models.exists()
    brought = wanted(words)
    if words != f"hf:{REPOSITORY}":
        assert looked_at().path == brought.path
