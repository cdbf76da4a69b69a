"""A home whose settings name a receiver, and records of rows that pass and break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.follow.notify.receiving import Receiver, receiving

from rocwright.config import Config, config
from rocwright.follow.notify.look import LookOrder, look
from rocwright.home import Home
from rocwright.records.model import Promotion, Run, now
from rocwright.records.opening import open_records


@pytest.fixture
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """This machine's home folder."""
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    return home


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@dataclass
class Machine:
    """A machine that builds: what its settings say, and what is put on its records."""

    home: Home
    receiver: Receiver
    count: int = 0
    names: dict[str, str] = field(default_factory=lambda: {"stack": "tiny", "gpu": "gfx803", "base": "sid"})

    def settings(self, text: str = "") -> Config:
        """Write config.toml: the receiver is told of everything, unless a text stands for that."""
        said = text or f'[[notify]]\nname = "room"\nurl = "{self.receiver.url}"\n'
        (self.home.path / "config.toml").write_text(said)
        return config()

    def run(self, outcome: str, command: str = "build", **more: object) -> str:
        """A run that ended so; gives its id."""
        self.count += 1
        ident = f"20260101T0000{self.count:02}.000000Z-00000{self.count % 10}"
        said: dict[str, object] = {
            "id": ident,
            "command": command,
            "started": f"2026-01-01T00:{self.count:02}:00Z",
            "seconds": 3,
            **self.names,
            "gpu": (self.names["gpu"],),
            "outcome": outcome,
        }
        error = {"class": "compile", "message": "it does not compile", "cause": "a header is missing"}
        if outcome == "failed":
            step = {"name": "alpha", "key": "k" * 64, "outcome": "failed", "error": error}
            said |= {"steps": (step,), "failure": "compile"}
        with open_records(self.home) as records:
            records.put(Run.model_validate(said | more))
        return ident

    def promote(self, channel: str, run: str) -> None:
        with open_records(self.home) as records:
            records.promote(Promotion(**self.names, channel=channel, run=run, lock="l" * 64, at=now()))

    def look(self, **order: object) -> None:
        """As every command does at its end."""
        look(self.home, config(), LookOrder.model_validate(order))


@pytest.fixture
def machine(here: Home, receiver: Receiver) -> Machine:
    """One on which everything passes, and that is known."""
    made = Machine(here, receiver)
    made.settings()
    made.run("built")
    made.look(note=True)
    return made
