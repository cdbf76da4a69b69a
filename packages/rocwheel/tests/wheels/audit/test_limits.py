from __future__ import annotations

from rocwheel.wheels.audit.facts import isas
from rocwheel.wheels.audit.limits import excesses, may_want_more_lds
from rocwheel.wheels.devicecode.kernels import Argument, Descriptor, Kernel
from rocwheel_samples.tables import each

WGP_MODE = 1 << 29


def kernel(**changes: object) -> Kernel:
    plain = dict.fromkeys(
        ("vgprs", "agprs", "sgprs", "vgpr_spills", "sgpr_spills", "lds", "scratch", "kernargs"), 8
    )
    values = {"wave": 32, "workgroup": 1024, "dynamic_stack": False, "arguments": (), "descriptor": None}
    return Kernel(**{"name": "k", "symbol": "k.kd"} | plain | values | changes)  # type: ignore[arg-type]


def descriptor(granules: int, mode: int = WGP_MODE) -> Descriptor:
    others = dict.fromkeys(
        ("entry", "lds", "scratch", "kernargs", "rsrc2", "rsrc3", "properties", "preload"), 0
    )
    return Descriptor(rsrc1=(granules - 1) | mode, **others)


def told(one: Kernel, granules: int, code: str, on: str, mode: int = WGP_MODE) -> list[str]:
    return list(excesses(one, descriptor(granules, mode), isas()[code], isas()[on], on))


def test_what_fits_is_no_excess() -> None:
    assert told(kernel(vgprs=128), 16, "gfx1100", "gfx1103") == []


def test_more_lds_than_there_is() -> None:
    assert told(kernel(lds=100_000, wave=64), 2, "gfx950", "gfx942") == [
        "a work-group takes 100,000 bytes of LDS; gfx942 has 65,536"
    ]


@each(("workgroup", "fits"), [(768, True), (896, False), (1024, False), (0, False)])
def test_a_work_group_must_be_resident_as_a_whole(workgroup: int, fits: bool) -> None:
    # 160 registers are 10 granules of 16: six waves in each of four units that have 1024
    found = told(kernel(vgprs=160, workgroup=workgroup), 20, "gfx1100", "gfx1150")
    assert (found == []) is fits
    assert all("groups of at most 768" in text for text in found)


def test_in_cu_mode_a_work_group_has_half_of_the_units() -> None:
    assert told(kernel(vgprs=120, workgroup=512), 15, "gfx1100", "gfx1103", mode=0) == []
    (text,) = told(kernel(vgprs=130, workgroup=512), 17, "gfx1100", "gfx1103", mode=0)
    assert "groups of at most 448" in text


def test_a_descriptor_that_asks_for_fewer_than_are_used_where_granules_are_smaller() -> None:
    (text,) = told(kernel(vgprs=64, wave=64, workgroup=64), 8, "gfx90a", "gfx908")
    assert text == "its descriptor asks gfx908 for 32 vector registers; it uses 64"


def test_more_registers_than_a_wave_can_have() -> None:
    found = told(kernel(vgprs=300, wave=64, workgroup=64), 38, "gfx90a", "gfx908")
    assert "a wave takes 300 vector registers; gfx908 has 256" in found


def test_more_scalar_registers_than_there_are() -> None:
    assert told(kernel(sgprs=104, wave=64), 2, "gfx803", "gfx802") == [
        "a wave takes 104 scalar registers; gfx802 has 96"
    ]


def test_more_scratch_than_a_wave_can_have() -> None:
    (text,) = told(kernel(scratch=300_000), 2, "gfx1200", "gfx1100")
    assert text.startswith("a wave takes 9,600,000 bytes of scratch")


def test_a_wave_size_that_is_not_there_is_told_alone() -> None:
    assert told(kernel(lds=1 << 20), 2, "gfx1030", "gfx900") == [
        "it uses waves of 32 work-items, which gfx900 does not support"
    ]


def test_lds_asked_for_at_launch_matters_where_there_is_less() -> None:
    one = kernel(arguments=(Argument(offset=0, size=4, kind="hidden_dynamic_lds_size"),))
    assert may_want_more_lds(one, isas()["gfx950"], isas()["gfx942"])
    assert not may_want_more_lds(one, isas()["gfx942"], isas()["gfx950"])
    assert not may_want_more_lds(kernel(), isas()["gfx950"], isas()["gfx942"])
