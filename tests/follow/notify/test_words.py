"""What a message says, and what it cannot be made to do."""

from __future__ import annotations

from rocwright.follow.notify.model import Fact, StateChange
from rocwright.follow.notify.words import LINE_LIMIT, LONGEST, body_of, change_of, plain, title_of


def change(number: int = 1, **more: object) -> StateChange:
    said: dict[str, object] = {
        "id": f"{number:032x}",
        "kind": "broken",
        "subject": f"row-{number}",
        "at": "2026-01-01T00:00:00Z",
        "headline": f"broken: row-{number}",
        "detail": ("alpha: it does not compile",),
    }
    return StateChange.model_validate(said | more)


def test_few_changes_are_told_in_full_and_many_by_their_headlines() -> None:
    few, many = body_of([change()], "lab"), body_of([change(n) for n in range(9)], "lab")
    assert few == "broken: row-1\n  alpha: it does not compile\n\nseen on lab, 2026-01-01T00:00:00Z"
    assert "it does not compile" not in many
    assert many.count("broken: row-") == 9


def test_a_flood_of_changes_is_a_message_of_bounded_size() -> None:
    flood = [change(number) for number in range(1000)]
    body = body_of(flood, "lab")
    assert body.count("broken: row-") == LINE_LIMIT
    assert f"and {1000 - LINE_LIMIT} more changes" in body
    assert title_of(flood) == "rocwright: 1000 broken"


def test_a_text_of_a_stranger_calls_nobody_and_obeys_no_terminal() -> None:
    said = plain("@everyone @here <!channel> <@U123> \x1b[31mred\x07 a@example.org")
    assert "@everyone" not in said and "@here" not in said
    assert "<!" not in said and "<@" not in said
    assert "\x1b" not in said and "\x07" not in said
    assert "a@example.org" in said


def test_a_text_of_a_stranger_is_short() -> None:
    assert len(plain("x" * 10_000)) == LONGEST


def test_secrets_of_what_is_told_are_masked() -> None:
    fact = Fact("row x", "broken build", "run", "x")
    lines = ["fetching https://me:hunter2@example.org/x", "API_TOKEN=abcdef", "with swordfish inside"]
    made = change_of("broken", fact, "2026-01-01T00:00:00Z", lines, ["swordfish"])
    told = made.model_dump_json()
    assert not [secret for secret in ("hunter2", "abcdef", "swordfish") if secret in told]


def test_what_is_lost_in_a_cut_off_delivery_is_told_with_a_doubt() -> None:
    assert body_of([change()], "lab", doubt=True).startswith("This may have been told before")
