"""A missing header becomes the name of a package."""

from __future__ import annotations

from rocwright.diagnosis.diagnose import diagnose
from rocwright.diagnosis.missing import with_packages

LOG = b"a.cpp:3:10: fatal error: 'numa.h' file not found\n"


def test_the_remedy_of_a_missing_header_names_the_packages_of_the_base() -> None:
    asked = []

    def packages_with(header: str) -> tuple[str, ...]:
        asked.append(header)
        return ("libnuma-dev", "other-dev")

    found = with_packages(diagnose([LOG]), "debian:sid", packages_with)
    assert asked == ["numa.h"]
    assert found.cause is not None
    assert found.cause.packages == ("libnuma-dev", "other-dev")
    assert found.cause.issue.remedy.startswith("On debian:sid it is in libnuma-dev or other-dev: ")


def test_where_no_package_has_it_the_remedy_says_how_to_look() -> None:
    before = diagnose([LOG])
    assert with_packages(before, "debian:sid", lambda header: ()) == before
    assert before.cause is not None
    assert "--find-packages" in before.cause.issue.remedy


def test_nothing_is_looked_up_for_another_cause() -> None:
    for log in (b"all well\n", b"/usr/bin/ld: cannot find -lnuma: No such file or directory\n"):
        assert with_packages(diagnose([log]), "debian:sid", lambda header: ("wrong",)) == diagnose([log])
