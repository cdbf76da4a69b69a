"""`rocwright bench`: what is refused, and two stacks side by side from the records."""

from __future__ import annotations

import json

from tests.conftest import Command
from tests.verify.bench.test_on_record import figure, run

from rocwright.home import Home
from rocwright.records.opening import open_records

ASKED = ("bench", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid")


def test_figures_that_are_not_there_are_named(rocwright: Command) -> None:
    done = rocwright(*ASKED, "--compare", "llama-hip")
    assert done.returncode == 2
    assert "rocwright bench llama-vulkan --gpu gfx1151" in done.stderr


def test_two_stacks_are_compared_from_the_records(rocwright: Command, home: Home) -> None:
    with open_records(home) as records:
        records.put(run(1, figure(100, 101, 99, 100, 100), stack="llama-vulkan"))
        records.put(run(2, figure(150, 151, 149, 150, 150, device="cpu"), stack="llama-hip"))
    done = rocwright(*ASKED, "--compare", "llama-hip")
    assert done.returncode == 0, done.stderr
    assert "llama-vulkan" in done.stdout and "llama-hip" in done.stdout
    assert "+50.0%" in done.stdout and "in software" in done.stdout
    (one,) = json.loads(rocwright(*ASKED, "--compare", "llama-hip", "--json").stdout)
    assert (one["certain"], one["one"]["values"][0], one["other"]["device"]) == (True, 100, "cpu")


def test_how_often_belongs_to_the_suite_drift(rocwright: Command) -> None:
    done = rocwright("verify", "--suite", "torch", "--repeat", "5")
    assert done.returncode == 2
    assert "--repeat is for --suite drift" in done.stderr
