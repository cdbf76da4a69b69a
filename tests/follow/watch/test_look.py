"""What upstream has that a lock has not: real repositories, and a package index on this machine."""

from __future__ import annotations

from typing import Any

from tests.follow.watch.conftest import (
    NOW,
    Field,
    catalog_of,
    component,
    git_component,
    lock_with,
    python_lock,
    release,
    request_of,
    tag,
)
from tests.sources.conftest import Index, Repository

from rocwright.catalog.issue import FixedIn, Issue
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.place import GitPlace
from rocwright.catalog.remedy import SetVariables
from rocwright.follow.watch.model import ALARM_EXIT, SILENT_EXIT, News
from rocwright.follow.watch.questions import unasked, watched
from rocwright.follow.watch.tell import tell_report
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.resolve.aliases import taken_over
from rocwright.plan.resolve.model import LockedComponent, Remedy
from rocwright.plan.resolve.settings import WatchSettings
from rocwright.plan.resolve.shipped import request_of as request_of_row
from rocwright.plan.resolve.shipped import rows, shipped_lock
from rocwright.sources.git import resolve_tag


def hello(repository: Repository, *versions: str, **more: object) -> Any:
    releases = [release(one, {"git": repository.url, "tag": f"v{one}"}) for one in versions]
    return component("hello", *releases, **more)


def only(news: tuple[News, ...]) -> News:
    (one,) = news
    return one


def test_a_new_tag_is_told_with_its_age_its_notes_and_how_to_take_it(
    repository: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    tag(repository, "v1.0.1", "2026-11-09")
    catalog = catalog_of(hello(repository, "1.0.0", notes="https://example.org/notes/{version}"))
    report = field.look(catalog, lock)
    news = only(report.news)
    assert (news.has, news.new, news.step, news.age) == ("1.0.0", "1.0.1", "patch", 12)
    assert (news.admitted, news.pin) == (True, "1.0.1 like 1.0.0")
    assert news.notes == "https://example.org/notes/1.0.1"
    assert "  hello 1.0.0 -> 1.0.1 (patch, 12 days old)" in tell_report(report)
    assert report.exit_code() == 0
    assert report.exit_code(news_counts=True) == 20


def tag_with_commit(repository: Repository, version: str, day: str) -> str:
    """A tag of that day that ends with its commit."""
    name = f"master-{version}-{tag(repository, f'any-{version}', day)[:7]}"
    repository.git("tag", name, f"any-{version}")
    return name


def test_a_number_of_a_build_follows_the_last_and_a_tag_may_end_with_its_commit(
    repository: Repository, other: Repository, field: Field
) -> None:
    tag(repository, "b900", "2026-01-01")
    old = tag_with_commit(other, "90", "2026-01-01")
    hidden = git_component("draws", "90", other, old)
    lock = lock_with(git_component("speaks", "900", repository, "b900"), hidden)
    tag(repository, "b1000", "2026-01-09")
    newest = tag_with_commit(other, "100", "2026-01-09")
    place = {"git": other.url, "tag": old, "commit": hidden.commit}
    draws = component("draws", release("90", place, env={"BUILD": old, "KIND": "release"}), scheme="build")
    speaks = component("speaks", release("900", {"git": repository.url, "tag": "b900"}), scheme="build")
    report = field.look(catalog_of(speaks, draws), lock, take="patch")
    assert {(news.name, news.new, news.admitted, news.pin) for news in report.news} == {
        ("speaks", "1000", True, "1000 like 900"),
        ("draws", "100", True, "100 like 90"),
    }
    assert resolve_tag(other.url, "master-100-*") == other.git("rev-parse", f"{newest}^{{commit}}")
    followed = taken_over(draws.release[0], "100")
    assert followed.places == (GitPlace(git=other.url, tag="master-100-*"),)
    assert followed.env == {"BUILD": "master-100-unknown", "KIND": "release"}


def test_each_component_of_a_shipped_row_is_asked_about() -> None:
    catalog = builtin_catalog()
    for stack, row in rows(catalog):
        lock = shipped_lock(catalog, request_of_row(stack, row))
        if lock is not None:
            # which suite has a source package is known once it was locked with a network
            pending = {entry.name for entry in lock.components if entry.kind == "debian" and entry.pending}
            names = unasked(lock, watched(lock, catalog, WatchSettings(), NOW))
            assert {*names} == pending, stack.name


def test_a_component_that_nothing_lists_is_said_to_be_not_asked(field: Field) -> None:
    address = {"url": "https://example.invalid/hello-1.0.tar.gz"}
    locked = LockedComponent(
        name="hello", version="1.0", kind="archive", place="somewhere", pending="its sha256"
    )
    catalog = catalog_of(component("hello", release("1.0", address)))
    lines = tell_report(field.look(catalog, lock_with(locked)))
    assert "not asked: hello (no place of theirs lists versions)" in lines


def test_what_is_too_young_is_held_back_and_an_older_one_offered(
    repository: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    tag(repository, "v1.0.1", "2026-11-01")
    tag(repository, "v1.0.2", "2026-11-19")
    young, old = field.look(catalog_of(hello(repository, "1.0.0")), lock).news
    assert (young.new, young.admitted, young.why) == ("1.0.2", False, "cool-down: 2 of 7 days")
    assert (old.new, old.admitted) == ("1.0.1", True)


def test_filters_say_which_versions_are_worth_telling(repository: Repository, field: Field) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    for name in ("v1.0.1", "v1.1.0", "v2.0.0rc1", "nightly", "v0.9.0"):
        tag(repository, name, "2026-01-02")
    catalog = catalog_of(hello(repository, "1.0.0", "1.1.0"))
    told = {
        take: [one.new for one in field.look(catalog, lock, take=take).news]
        for take in ("patch", "stable", "all")
    }
    assert told == {
        "patch": ["1.0.1"],
        "stable": ["1.0.1", "1.1.0"],
        "all": ["1.0.1", "2.0.0rc1", "1.1.0"],
    }


def test_the_rule_that_keeps_a_version_out_is_told_in_words(
    repository: Repository, other: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    tag(other, "v1.0.0", "2026-01-01")
    lock = lock_with(
        git_component("hello", "1.0.0", repository, "v1.0.0"),
        git_component("user", "1.0.0", other, "v1.0.0"),
    )
    tag(repository, "v1.1.0", "2026-01-02")
    tag(repository, "v3.0.0", "2026-01-02")
    user = component("user", release("1.0.0", {"git": other.url, "tag": "v1.0.0"}, needs={"hello": "<1.1"}))
    catalog = catalog_of(hello(repository, "1.0.0", "1.1.0"), user)
    unknown, known = field.look(catalog, lock).news
    assert (known.new, known.admitted) == ("1.1.0", False)
    assert "user 1.0.0 needs hello <1.1" in known.why
    assert (unknown.new, unknown.admitted) == ("3.0.0", False)
    assert "the catalog knows no release of that series" in unknown.why


def test_a_pin_of_the_user_holds_and_is_named(repository: Repository, field: Field) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    part = git_component("hello", "1.0.0", repository, "v1.0.0")
    tag(repository, "v1.0.1", "2026-01-02")
    catalog = catalog_of(hello(repository, "1.0.0", "1.0.1"))
    news = only(field.look(catalog, lock_with(part, request=request_of(hello="1.0.0"))).news)
    assert not news.admitted
    assert "rocwright.toml pins it to 1.0.0" in news.why


def test_a_tag_that_moved_is_an_alarm_in_capitals_on_top_with_an_exit_code_of_its_own(
    repository: Repository, field: Field
) -> None:
    before = tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    now = tag(repository, "v1.0.0", "2026-11-20", "something else")
    tag(repository, "v1.0.1", "2026-01-02")
    report = field.look(catalog_of(hello(repository, "1.0.0")), lock)
    (alarm,) = report.alarms
    assert (alarm.had, alarm.now, alarm.kept) == (before, now, "whole")
    first = tell_report(report, quiet=True)[0]
    assert first.startswith("ALARM: THE TAG V1.0.0 OF ")
    assert first.isupper()
    assert report.exit_code() == ALARM_EXIT


def test_a_deleted_tag_is_a_caution_that_says_whether_the_store_has_a_copy(
    repository: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    repository.git("tag", "-d", "v1.0.0")
    field.kept = False
    report = field.look(catalog_of(hello(repository, "1.0.0")), lock)
    (caution,) = report.cautions
    assert caution.what.endswith("no longer exists")
    assert any("the store keeps NO copy of it" in line for line in tell_report(report))


def test_a_branch_that_is_followed_is_told_by_its_commit(repository: Repository, field: Field) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"))
    now = repository.commit("file", "newer\n")
    catalog = catalog_of(hello(repository, "1.0.0"))
    news = only(field.look(catalog, lock, branches={"hello": "main"}).news)
    assert (news.step, news.pin, news.new) == ("commit", f"@{now}", f"{now[:12]} (main)")
    (caution,) = field.look(catalog, lock, branches={"hello": "gone"}).cautions
    assert "the branch gone of" in caution.what


def test_a_repository_that_is_down_is_told_and_ends_nothing(
    repository: Repository, other: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    tag(other, "v1.0.0", "2026-01-01")
    parts = [
        git_component(name, "1.0.0", at, "v1.0.0") for name, at in (("hello", repository), ("two", other))
    ]
    tag(repository, "v1.0.1", "2026-01-02")
    two = component("two", release("1.0.0", {"git": other.url, "tag": "v1.0.0"}))
    other.path.rename(other.path.with_name("moved-away"))
    report = field.look(catalog_of(hello(repository, "1.0.0"), two), lock_with(*parts))
    assert [one.names for one in report.silent] == [("two",)]
    assert only(report.news).name == "hello"
    assert report.exit_code() == SILENT_EXIT


# a package index


def pinned(index: Index, filename: str, data: bytes = b"one") -> FilePin:
    from hashlib import sha256

    project, version = filename.split("-")[:2]
    index.files.setdefault(project, {})[filename] = data
    return FilePin(
        filename=filename,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        origin=IndexOrigin(project=project, version=version),
    )


def test_newer_releases_of_python_packages_are_told_and_what_recipes_ask_for_decides(
    index: Index, field: Field
) -> None:
    pins = [pinned(index, "six-1.0-py3-none-any.whl"), pinned(index, "wheel-1.0-py3-none-any.whl")]
    pinned(index, "six-2.0-py3-none-any.whl")
    pinned(index, "wheel-1.5-py3-none-any.whl")
    pinned(index, "wheel-2.0-py3-none-any.whl")
    report = field.look(catalog_of(), python_lock(*pins, wanted=("wheel<2", "pip")))
    told = {(one.name, one.new): (one.admitted, one.why, one.age) for one in report.news}
    assert told == {
        ("six", "2.0"): (True, "", None),
        ("wheel", "2.0"): (False, "recipes ask for wheel<2", None),
        ("wheel", "1.5"): (True, "", None),
    }
    assert any("its age is unknown" in line for line in tell_report(report))


def test_an_index_that_lies_about_a_hash_is_an_alarm_and_a_withdrawn_file_a_caution(
    index: Index, field: Field
) -> None:
    other, gone = pinned(index, "six-1.0-py3-none-any.whl"), pinned(index, "pip-1.0-py3-none-any.whl")
    index.files["six"]["six-1.0-py3-none-any.whl"] = b"another"
    del index.files["pip"]["pip-1.0-py3-none-any.whl"]
    report = field.look(catalog_of(), python_lock(other, gone))
    assert [one.name for one in report.alarms] == ["six"]
    assert [one.what for one in report.cautions] == ["pip-1.0-py3-none-any.whl is no longer on the index"]


def test_a_project_that_is_gone_and_an_index_that_speaks_nonsense(index: Index, field: Field) -> None:
    gone, odd = pinned(index, "six-1.0-py3-none-any.whl"), pinned(index, "pip-1.0-py3-none-any.whl")
    del index.files["six"]
    index.page = b'{"meta": {"api-version": "1.0"}, "files": 7}'
    report = field.look(catalog_of(), python_lock(gone, odd))
    assert [one.name for one in report.cautions] == ["six"]
    assert [one.names for one in report.silent] == [("pip",)]


# what a newer version makes needless


def test_edits_remedies_and_issues_that_a_new_version_makes_needless_are_told(
    repository: Repository, field: Field
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    action = SetVariables(kind="set", variables={"CMAKE": "1"})
    remedy = Remedy(
        issue="old-cmake",
        component="hello",
        version="1.0.0",
        action=action,
        why="x",
        step="hello",
        outcome="helped",
        since="2026-01-01T00:00:00Z",
    )
    lock = lock_with(git_component("hello", "1.0.0", repository, "v1.0.0"), remedies=(remedy,))
    tag(repository, "v1.0.1", "2026-01-02")

    def issue(name: str) -> Issue:
        words = dict.fromkeys(("means", "cause", "remedy"), f"{name} means trouble")
        lines = {"patterns": ["a+b"], "examples": ["aab"], "no_match": ["c"]}
        told = {"name": name, "class": "compile", "source": ["x"], "confidence": "medium"} | words | lines
        fixed = FixedIn(component="hello", versions=">=1.0.1", source="its notes")
        return Issue.model_validate(told).model_copy(update={"fixed_in": (fixed,)})

    edit = {"file": "a.c", "literal": "a", "with": "b", "for": "<1.0.1", "why": "a is wrong"}
    catalog = catalog_of(hello(repository, "1.0.0", edit=[edit]))
    issues = {name: issue(name) for name in ("old-cmake", "new-compiler")}
    assert only(field.look(catalog, lock, issues=issues).news).needless == (
        "the edit of a.c (for <1.0.1): a is wrong",
        "the remedy for old-cmake (fixed in hello >=1.0.1: its notes)",
        "the workaround for new-compiler: new-compiler means trouble (fixed there: its notes)",
    )
