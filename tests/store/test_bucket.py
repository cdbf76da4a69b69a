"""Objects in a folder, on an S3 server and on a plain web server: the same, and nothing is written over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.farm.proxy import proxied
from tests.store.servers import overwriting_s3, reach, s3, static_host
from tests.store.sharers import Machine

from rocbase.errors import InputError, NetworkError
from rocwright.store import bucket as bucket_module
from rocwright.store.bucket import PART, Bucket, plain_url
from rocwright.store.model import verified


@pytest.fixture(params=["folder", "s3"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    if request.param == "folder":
        yield Bucket((tmp_path / "bucket").as_uri())
        return
    with s3() as url:
        reach(monkeypatch, url)
        yield Bucket("s3://lab/some/prefix")


def test_an_object_is_read_as_it_was_put_and_never_written_over(bucket: Bucket) -> None:
    assert bucket.add("a/b", b"one")
    assert not bucket.add("a/b", b"two")
    assert bucket.get("a/b", 3) == b"one"
    assert bucket.size("a/b") == 3
    assert [(one.name, one.size) for one in bucket.list("a")] == [("a/b", 3)]
    bucket.remove("a/b")
    bucket.remove("a/b")
    assert (bucket.get("a/b", 3), bucket.size("a/b"), [*bucket.list("a")]) == (None, None, [])


def test_a_large_file_goes_in_parts_and_comes_from_any_byte_on(bucket: Bucket, tmp_path: Path) -> None:
    data = bytes(range(251)) * (2 * PART // 251 + 1)
    path = tmp_path / "large"
    path.write_bytes(data)
    assert bucket.add("large", path)
    assert not bucket.add("large", path)
    assert b"".join(bucket.chunks("large")) == data
    assert b"".join(bucket.chunks("large", len(data) - 10)) == data[-10:]


@pytest.mark.parametrize("other", [b"", b"other"])
def test_a_put_whose_answer_was_lost_is_repeated(monkeypatch: pytest.MonkeyPatch, other: bytes) -> None:
    """It was done, unless another's object was there before."""
    with s3() as url, proxied(int(url.rpartition(":")[2])) as proxy:
        reach(monkeypatch, proxy.url)
        bucket = Bucket("s3://lab/lost")
        assert not other or bucket.add("a", other)
        proxy.mood = "lost"
        assert bucket.add("a", b"one") is not bool(other)
        assert str(proxy.mood) == "well"
        assert bucket.get("a", 5) == (other or b"one")


def test_what_comes_slowly_comes_whole_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 2400
    monkeypatch.setattr(bucket_module, "CHUNK", 64 * 1024)
    with s3() as url, proxied(int(url.rpartition(":")[2])) as proxy:
        reach(monkeypatch, proxy.url)
        Bucket("s3://lab/slow").add("large", data)
        proxy.mood = "slow"
        assert b"".join(Bucket("s3://lab/slow", seconds=2, tries=1).chunks("large")) == data
        # who would rather not have it than wait
        with pytest.raises(NetworkError):
            [*Bucket("s3://lab/slow", seconds=2, tries=0).chunks("large")]


def test_more_than_may_be_is_not_read(bucket: Bucket) -> None:
    bucket.add("a", b"12345")
    with pytest.raises(InputError, match="more than 4 bytes"):
        bucket.get("a", 4)


def test_a_store_that_honours_conditional_puts_passes_the_probe_and_keeps_nothing_of_it(
    bucket: Bucket,
) -> None:
    bucket.check_writable()
    assert [*bucket.list("probe")] == []


def test_a_store_that_overwrites_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with overwriting_s3() as url:
        reach(monkeypatch, url)
        with pytest.raises(InputError, match="overwrites what is there") as caught:
            Bucket("s3://lab").check_writable()
    assert "conditional puts" in caught.value.next_step


def test_a_plain_web_server_is_read_and_takes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "www"
    made = Bucket(folder.as_uri())
    made.add("a/b", b"0123456789")
    with static_host(folder) as url:
        web = Bucket(url)
        assert web.get("a/b", 10) == b"0123456789"
        # it knows no ranges: all of it comes, and what was there is left out
        assert b"".join(web.chunks("a/b", 7)) == b"789"
        assert web.get("nothing", 10) is None
        with pytest.raises(InputError, match="can be read, not written"):
            web.check_writable()


@pytest.mark.parametrize("url", ["s3://me:hunter2@lab", "https://lab.example/x?token=hunter2"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Bucket(url)
    assert "hunter2" not in str(caught.value.as_dict())
    assert "hunter2" not in plain_url(url)


def test_a_scheme_that_no_store_has_is_refused() -> None:
    with pytest.raises(InputError, match="unsupported store URL: ftp") as caught:
        Bucket("ftp://lab.example/x")
    assert "s3://" in caught.value.cause


def test_a_folder_in_place_of_a_url_is_answered_with_its_url() -> None:
    with pytest.raises(InputError, match="unsupported store URL: /srv/my share") as caught:
        Bucket("/srv/my share")
    assert caught.value.next_step == "a folder is file:///srv/my%20share"


def test_a_server_that_is_not_there_is_a_fault_of_the_network_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reach(monkeypatch, "http://127.0.0.1:1", secret="hunter2")
    with pytest.raises(NetworkError, match="did not answer") as caught:
        Bucket("s3://lab").get("a", 1)
    assert "hunter2" not in str(caught.value.as_dict())


def test_two_machines_share_a_store_on_an_s3_server_and_on_a_static_host(
    bucket: Bucket, tmp_path: Path
) -> None:
    lab, mine = Machine(tmp_path / "lab", "lab"), Machine(tmp_path / "mine", "me")
    made = lab.make(b"what was built")
    lab.push(bucket, made)
    assert mine.behind(bucket, lab.key).bring(made.key)
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert store.bring(made.key)
    assert verified(mine.store, made.outputs[0].sha256).read_bytes() == b"what was built"
    if bucket.url.startswith("file://"):
        with static_host(tmp_path / "bucket") as url:
            third = Machine(tmp_path / "third", "third")
            store = third.behind(Bucket(url), lab.key)
            assert store.record(made.key)
            assert store.bring(made.key)


def test_a_folder_that_is_not_there_is_empty_and_is_not_made_by_looking(tmp_path: Path) -> None:
    bucket = Bucket((tmp_path / "nothing").as_uri())
    assert (bucket.get("a", 1), bucket.size("a"), [*bucket.list("a")]) == (None, None, [])
    bucket.remove("a")
    assert not (tmp_path / "nothing").exists()


def test_a_bucket_that_is_not_there_and_one_that_cannot_be_opened_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3() as url:
        reach(monkeypatch, url)
        with pytest.raises(InputError, match="there is no bucket at s3://nowhere/x"):
            Bucket("s3://nowhere/x").check_writable()
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="az://lab cannot be opened"):
        Bucket("az://lab")


def test_the_server_of_make_farm_prints_no_line_for_a_request(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), s3():
        pass
    assert caplog.text == ""
