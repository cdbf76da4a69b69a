"""What a log tells of itself: its days and its cards."""

from __future__ import annotations

from datetime import date

from rocwright.diagnosis.log_facts import END, FIRST, MOST_CARDS, LogFacts

DAYS, CARDS = [r"^(20[0-9]{2}-[0-9]{2}-[0-9]{2})T"], [r"^ +Name: +(gfx[0-9a-f]+)", r"arch : (gfx[0-9a-f]+)"]


def read(*pieces: bytes) -> LogFacts:
    facts = LogFacts(DAYS, CARDS)
    for piece in pieces:
        facts.feed(piece)
    facts.finish()
    return facts


def test_the_newest_day_is_told_and_none_where_no_day_stands() -> None:
    assert read(b"2024-01-12T a\n2023-05-01T b\n", b"2024-01-13T c\n").newest == date(2024, 1, 13)
    assert read(b"built on 2024-01-12\n").newest is None
    assert read(b"2024-13-45T a\n").newest is None
    assert read(b"").newest is None


def test_cards_are_told_once_each_and_are_bounded() -> None:
    assert read(b"  Name:  gfx1103 \n  Name:  gfx1103 \nfor GPU arch : gfx906\n").cards == (
        "gfx1103",
        "gfx906",
    )
    many = b"".join(b"  Name:  gfx%x\n" % number for number in range(0x100, 0x180))
    assert len(read(many).cards) == MOST_CARDS


def test_of_a_long_piece_its_two_ends_are_read() -> None:
    middle = b"x" * 100 + b"\n"
    filler = middle * (2 * END // len(middle))
    piece = b"2024-01-12T a\n" + filler + b"2030-01-01T never read\n" + filler + b"2024-01-14T z\n"
    assert read(piece).newest == date(2024, 1, 14)


def test_where_no_pattern_is_known_nothing_is_told() -> None:
    facts = LogFacts((), ())
    facts.feed(b"2024-01-12T a\n  Name:  gfx1103\n")
    assert (facts.newest, facts.cards) == (None, ())


def test_of_a_long_log_the_begin_and_the_end_are_read() -> None:
    pieces = [b"2024-01-01T a\n  Name:  gfx1103\n", *[b"nothing\n"] * (FIRST + 3), b"2024-02-01T z\n"]
    facts = read(*pieces)
    assert (facts.newest, facts.cards) == (date(2024, 2, 1), ("gfx1103",))
