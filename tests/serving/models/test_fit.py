"""Does a model fit: told before it is loaded, with what is missing and what would fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import OutOfMemoryError
from rocwright.catalog.model_files import model_facts
from rocwright.diagnosis.machine.model import Driver, Gpu, Machine, Memory, Topology, User
from rocwright.serving.models.fit import (
    ModelNeed,
    Room,
    arguments,
    check_fit,
    estimate,
    fits,
    parse_answer,
    room_of,
    smaller,
)
from rocwright.serving.models.model import Head, Model

FACTS = model_facts()
GIB = 1024**3
HEAD = Head(
    weights=int(4.58 * GIB),
    parameters=8_030_000_000,
    quantisation="Q4_K_M",
    context=131072,
    layers=32,
    kv_heads=(8,) * 32,
    key=128,
    value=128,
)


def model(head: Head = HEAD) -> Model:
    path = Path("/models/llama-8b.gguf")
    return Model(paths=(path,), format="gguf", size=head.weights, sha256=None, origin="x", head=head)


def machine(gpu: Gpu | None, available: int = 16 * GIB, limit: int | None = None) -> Machine:
    return Machine(
        gpus=(gpu,) if gpu else (),
        topology=Topology(there=bool(gpu)),
        user=User(uid=0, name="root", groups=()),
        rights=(),
        driver=Driver(kernel="6", module=True),
        memory=Memory(total=32 * GIB, available=available, limit=limit),
    )


def gpu(vram: int, gtt: int = 0, *, shared: bool = False) -> Gpu:
    return Gpu(target=None, pci_id="1002:0000", told_by=("drm",), vram=vram, gtt=gtt, shared=shared)


def test_the_cache_of_llama_3_8b_is_what_llama_cpp_tells() -> None:
    # llama.cpp's log: KV self size = 1024.00 MiB for 8192 tokens (32 layers, 8 heads of 128, f16)
    assert estimate(HEAD, FACTS, context=8192).cache == GIB


def test_a_sliding_window_may_take_less() -> None:
    found = estimate(replace(HEAD, window=1024), FACTS, context=8192)
    assert found.least == HEAD.weights + GIB // 8 < found.most


def test_states_of_one_size_may_take_nothing() -> None:
    found = estimate(replace(HEAD, attends=False), FACTS, context=8192)
    assert found.least == HEAD.weights


def test_what_fits_says_nothing() -> None:
    assert check_fit(model(), estimate(HEAD, FACTS), Room("VRAM", 8 * GIB), FACTS) == ""


def test_what_does_not_fit_names_what_is_missing_and_the_next_smaller() -> None:
    need = estimate(HEAD, FACTS, context=8192)
    with pytest.raises(OutOfMemoryError) as refused:
        check_fit(model(), need, Room("VRAM", 5 * GIB), FACTS)
    assert "1.58 GiB are missing" in refused.value.message
    assert "Q2_K (about 2.95 GiB) would fit" in refused.value.next_step
    assert "VRAM has 5.00 GiB" in refused.value.cause


def test_where_nothing_fits_a_smaller_model_is_named() -> None:
    with pytest.raises(OutOfMemoryError, match="does not fit") as refused:
        check_fit(model(), estimate(HEAD, FACTS), Room("VRAM", 2 * GIB), FACTS)
    assert "smaller model" in refused.value.next_step


def test_what_may_or_may_not_fit_is_said_and_not_refused() -> None:
    need = ModelNeed(weights=4 * GIB, cache=3 * GIB, margin=GIB, least=5 * GIB, said_by="x")
    assert "fits tightly" in check_fit(model(), need, Room("VRAM", 6 * GIB), FACTS)


def test_the_next_smaller_is_the_largest_that_fits() -> None:
    need = estimate(HEAD, FACTS)
    bits = {one.name: one.bits or 0 for one in FACTS.quantisations.types}
    room = need.most - GIB // 2
    name = smaller(HEAD, need, room, FACTS).partition(" ")[0]
    larger = [one for one, of in bits.items() if bits[name] < of < 8 * HEAD.weights / HEAD.parameters]
    rest = need.cache + need.margin
    assert HEAD.parameters * bits[name] / 8 + rest <= room
    assert all(HEAD.parameters * bits[one] / 8 + rest > room for one in larger)


def test_a_card_has_its_own_memory_alone() -> None:
    card = gpu(8 * GIB, 16 * GIB)
    assert room_of(machine(card), card) == Room("the GPU's memory (VRAM)", 8 * GIB)


def test_a_gpu_that_shares_memory_reaches_what_is_free() -> None:
    card = gpu(GIB // 2, 60 * GIB, shared=True)
    found = room_of(machine(card, available=20 * GIB), card)
    assert found is not None and found.bytes == GIB // 2 + 20 * GIB


def test_without_a_gpu_the_limit_of_the_machine_counts() -> None:
    found = room_of(machine(None, limit=4 * GIB), None)
    assert found is not None and found.bytes == 4 * GIB


def test_memory_that_nothing_tells_is_unknown() -> None:
    card = gpu(GIB).model_copy(update={"vram": None})
    assert room_of(machine(card), card) is None


def test_llama_cpps_answer_is_read() -> None:
    found = parse_answer("Vulkan0 7401 814 517 \nHost 1280 0 154 \n", FACTS)
    assert found is not None
    assert (found.weights, found.cache) == (7401 * 1024**2, 814 * 1024**2)
    assert found.margin == 517 * 1024**2 + GIB and "llama-fit-params" in found.said_by


def test_without_a_device_the_host_is_read() -> None:
    found = parse_answer("Host 1280 10 154 \n", FACTS)
    assert found is not None and found.weights == 1280 * 1024**2


def test_words_that_are_no_answer_are_none() -> None:
    assert parse_answer("error: unknown argument\n0 1 2\n", FACTS) is None


def test_the_program_is_asked_of_the_model_as_it_sees_it() -> None:
    words = " ".join(arguments("/models/llama-8b.gguf", model(), FACTS, context=512, slots=2))
    assert "--model /models/llama-8b.gguf --ctx-size 512 --parallel 2" in words


def test_what_llama_cpp_says_counts_before_the_estimate() -> None:
    card = gpu(16 * GIB)
    room = room_of(machine(card), card)
    told, need = fits(model(), room)
    assert told == "" and need is not None and need.said_by.startswith("an estimate")
    said = parse_answer("Vulkan0 20000 10 10 ", FACTS)
    with pytest.raises(OutOfMemoryError, match="does not fit") as refused:
        fits(model(), room, reported=said)
    assert "llama-fit-params" in refused.value.cause


def test_a_model_without_a_head_is_not_refused() -> None:
    found = replace(model(), head=None)
    assert "nothing tells" in fits(found, room_of(machine(None), None))[0]


def test_a_gpu_that_does_not_tell_its_memory_refuses_nothing() -> None:
    card = gpu(GIB).model_copy(update={"vram": None})
    assert "nothing tells how much memory the GPU has" in fits(model(), room_of(machine(card), card))[0]
