"""What people call an AMD GPU, and which processor they mean: the one matcher behind all that names a GPU.

A name may be a target (gfx1151), a product ("RX 580", 7900XTX, "Ryzen AI Max+ 395"), a code name, a PCI id
(1002:67df, 0x67df) or a family. Spaces, dashes, case, and words such as AMD, Radeon, Graphics do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache

from rocbase.errors import InputError
from rocwheel.wheels.detect import target_of_version
from rocwheel.wheels.gpu_table import GpuMaker, GpuNames, GpuTable, Unsupported

AMD = "1002"
"""AMD's PCI vendor id."""

MOST_SHOWN, MOST_CHARACTERS = 100, 200
"""A longer text is no name of a GPU; lspci's lines have some 150 characters. Of it so many are shown."""

_MAKER = frozenset({"amd", "ati", "radeon", "instinct", "graphics", "gpu", "igpu", "apu", "series"})
_GLUED = re.compile(r"^(?:amd|ati|radeon|instinct)+(?=.)|(?<=.)(?:graphics|series|igpu|gpu|apu)+$")
_LINES = frozenset({"rx", "r9", "pro", "ai", "firepro", "embedded", "ryzen"})
"""Product lines: the first words of a name, which people leave out (7900 XTX, MI50, W6800)."""

_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]")
_ASIDE = re.compile(r"\([^()]*\)?")
_WITH = re.compile(r"\bw/\s*|\bwith\s+")
"""Between a processor and its graphics: "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"."""
_PCI = re.compile(r"\[?(?:0x)?([0-9a-f]{4}):(?:0x)?([0-9a-f]{4})]?|0x([0-9a-f]{4})")
_DEVICE = re.compile(r"[0-9a-f]{4}")
_LSPCI = re.compile(
    r"(?:.*\[amd/ati])?([^\[\]]*[^\[\]\s][^\[\]]*)\[([^\[\]]+)]"
    r"(?:\s*\[([0-9a-f]{4}:[0-9a-f]{4})])?(?:\s*\(rev [0-9a-f]+\))?"
)
"""As lspci says it: "Ellesmere [Radeon RX 470/480/570]", with a line's beginning, a PCI id or a revision."""
_MEMORY = re.compile(r"(?<=\w)\s+\d{1,3}\s?gi?b\b")
"""What a card is sold with: "RX 580 8GB"."""
_TEXT = re.compile(r"[\w\s\-+.,'()®™©]*")
_FEATURES = re.compile(r"(.*?)((?::[a-z]+[+-])+)", re.DOTALL)
_TARGET = re.compile(
    r"(?:amdgcn-amd-amdhsa--)?(gfx[0-9a-f]{3,4})(?::[a-z]+[+-])*"
    r"|[\w\s.+-]*\(?\bradv (gfx[0-9a-f]{3,4})\)?"
)
"""As programs say a target: "amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-", "AMD Radeon 780M (RADV GFX1103)"."""
_VERSION = re.compile(r"[0-9]{5,6}")
"""As the kernel says a target in gfx_target_version: 110003."""
_BARE = re.compile(r"[0-9][0-9a-f]{2,3}")
_SHOWN, _MOST_TOLD = 3, 8

Fits = Callable[[tuple[str, ...], tuple[str, ...]], bool]


def find(text: str, table: GpuTable) -> tuple[GpuNames, ...]:
    """The processors that `text` means: one or several. Raises InputError where it means none.

    What it names exactly goes before what it only begins to name: "RX 6700" is not "RX 6700S", "strix" is
    both Strix Point and Strix Halo.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"unknown GPU target {text[:MOST_SHOWN]!r}...",
            cause=f"a name of a GPU has at most {MOST_CHARACTERS} characters",
            next_step=f"see the list of names: {table.lists}",
        )
    full_query = _WITH.split(text.strip().lower())[-1]
    query = _MEMORY.sub("", full_query)
    if _VERSION.fullmatch(query):
        query = target_of_version(int(query))
    if printed := _TARGET.fullmatch(query):
        query = printed[1] or printed[2]
    if listed := _LSPCI.fullmatch(query):
        return _of_lspci(text, listed, table)
    if pci := _PCI.fullmatch(query):
        return _of_pci(text, pci[1] or AMD, pci[2] or pci[3], table)
    key, words = (_key(query), _words(query)) if _TEXT.fullmatch(query) else ("", ())
    # some cards differ in nothing else: RX 6750 GRE 10GB and 12GB
    whole_key = _key(full_query) if key else ""
    for matches in (
        _select(table, lambda gpu: bool(whole_key) and any(whole_key in _keys(name) for name in gpu.names)),
        _select(table, lambda gpu: key == _key(gpu.target) or query in map(str.lower, gpu.families)),
        _select(table, lambda gpu: bool(key) and any(key in _keys(name) for name in gpu.names)),
        _select(table, lambda gpu: bool(_BARE.fullmatch(key)) and gpu.target == f"gfx{key}"),
    ):
        if matches:
            return matches
    if maker := _maker(key, words, table.makers):
        raise _of_another(text, maker, table.lists)
    if old := _old(query, table):
        raise _of_old(text, old, table)
    matches = _fitting(table, words, _among) or _fitting(table, words, _begin)
    if matches:
        return matches
    if _DEVICE.fullmatch(query) and _has_pci(table, f"{AMD}:{query}"):
        return _of_pci(text, AMD, query, table)
    raise _unknown(text, key, table)


def find_one(text: str, table: GpuTable) -> GpuNames:
    """The one processor that `text` means. Raises InputError for none, and for several, with their names."""
    matches = find(text, table)
    if len(matches) > 1:
        words = {*_words(text)}
        shown = [_shown(gpu, words) for gpu in matches[:_MOST_TOLD]]
        suffix = f"; and {len(matches) - len(shown)} more" if len(matches) > len(shown) else ""
        targets = ", ".join(gpu.target for gpu in matches)
        raise InputError(
            f"{text.strip()!r} means more than one target: {targets}",
            cause=f"it may mean {'; '.join(shown)}{suffix}",
            next_step=f"give the target, such as {matches[0].target}; "
            f"`{table.lists} {matches[0].target}` describes it",
        )
    return matches[0]


def target_id(text: str, table: GpuTable) -> str:
    """`text` as LLVM's target id: "RX 580" is gfx803, "MI250X:xnack-" gfx90a:xnack-. Raises InputError."""
    features = _FEATURES.fullmatch(text.strip())
    if features is None or _PCI.fullmatch(text.strip().lower()):
        return find_one(text, table).target
    return ":".join((find_one(features[1], table).target, *sorted(features[2].split(":")[1:])))


def _shown(gpu: GpuNames, words: set[str]) -> str:
    """A target with the names that share a word with what was said, else with its first products."""
    alike = sorted(gpu.names, key=lambda name: -len(words & {*_words(name)}))
    suffix = ", ..." if len(alike) > _SHOWN else ""
    return f"{gpu.target} ({', '.join(alike[:_SHOWN])}{suffix})" if alike else gpu.target


def _fitting(table: GpuTable, words: tuple[str, ...], fits: Fits) -> tuple[GpuNames, ...]:
    return _select(table, lambda gpu: any(fits(words, _words(name)) for name in gpu.names))


def _select(table: GpuTable, fits: Callable[[GpuNames], bool]) -> tuple[GpuNames, ...]:
    return tuple(gpu for gpu in table.gpus if fits(gpu))


# names in words


def _plain(text: str) -> str:
    """Lower case, without marks such as (TM) and without what stands in parentheses."""
    return _ASIDE.sub(" ", _MARKS.sub(" ", text.lower()))


@lru_cache(4096)
def _words(text: str) -> tuple[str, ...]:
    """Letters and numbers apart, without words that tell no card from another: 7900XTX is 7900, xtx."""
    words = re.findall(r"[a-z]+|[0-9]+", _plain(text))
    return tuple(word for word in words if word not in _MAKER)


def _key(text: str) -> str:
    """All in one word: "AMD Radeon RX 580 Graphics" and amdradeonrx580 are rx580."""
    return _GLUED.sub("", "".join(_words(text)))


@lru_cache(4096)
def _keys(name: str) -> frozenset[str]:
    """The name in one word, whole ("Custom GPU 0405") and without the product lines that it begins with."""
    words = [word for word in _plain(name).split() if word not in _MAKER]
    keys = {_key(name), _GLUED.sub("", re.sub(r"[^a-z0-9]", "", _plain(name)))}
    while len(words) > 1 and words[0] in _LINES and not re.match(r"\d{1,2}\b", words[1]):
        words = words[1:]
        keys.add(_key(" ".join(words)))
    return frozenset(keys)


def _among(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return bool(words) and set(words) <= set(name)


def _begin(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Whether each word begins one of the name's; a number, or one or two letters, must be there whole."""
    return bool(words) and all(
        any(part.startswith(word) for part in name) if word.isalpha() and len(word) > 2 else word in name
        for word in words
    )


# what is no AMD GPU, or none that is known


def _of_pci(text: str, vendor: str, device: str, table: GpuTable) -> tuple[GpuNames, ...]:
    if vendor != AMD:
        maker_name = next(
            (maker.name for maker in table.makers if vendor in maker.pci), f"PCI vendor {vendor}"
        )
        raise _of_another(text, maker_name, table.lists)
    matches = _select(table, lambda gpu: f"{vendor}:{device}" in gpu.pci_ids)
    if old := _old(f"{vendor}:{device}", table):
        raise _of_old(text, old, table)
    if not matches:
        raise InputError(
            f"unknown GPU target {text.strip()!r}",
            cause=f"no known GPU has the PCI id {vendor}:{device}",
            next_step=f"give its target; `{table.lists}` lists them",
        )
    return matches


def _has_pci(table: GpuTable, pci_id: str) -> bool:
    return any(pci_id in gpu.pci_ids for gpu in table.gpus) or _old(pci_id, table) is not None


def _of_lspci(text: str, listed: re.Match[str], table: GpuTable) -> tuple[GpuNames, ...]:
    """By the PCI id where lspci tells it, else by the chip, else by the products behind that."""
    chip, products, pci = listed.groups()
    if maker := _maker(_key(chip), _words(f"{chip} {products}"), table.makers):
        raise _of_another(text, maker, table.lists)
    matches, names = [], [pci] if pci else [chip, *products.split("/")]
    for name in names:
        with suppress(InputError):
            matches.append(find(name, table))
    for old in filter(None, (_old(name, table) for name in names)):
        raise _of_old(text, old, table)
    if not matches:
        raise _unknown(text, _key(chip), table)
    # a chip such as Strix may be two, of which the products are one
    return min(matches, key=len)


def maker_of(device: str, table: GpuTable) -> str:
    """The other maker of a GPU by the name that its driver gives it; "" for AMD's, and for one not known."""
    return _maker(_key(device), _words(device), table.makers)


def _maker(key: str, words: tuple[str, ...], makers: Iterable[GpuMaker]) -> str:
    """The other maker whose GPU is named; "" where none is."""
    for maker in makers:
        names = [_key(name) for name in maker.names]
        glued = (
            rf"(?:{'|'.join(map(re.escape, maker.words))})+"
            rf"(?:{'|'.join([*map(re.escape, names), '[0-9].*'])})"
        )
        if set(words) & set(maker.words) or key in names or (maker.words and re.fullmatch(glued, key)):
            return maker.name
    return ""


def _of_another(text: str, maker: str, lists: str) -> InputError:
    return InputError(
        f"{text.strip()!r} is a GPU of another maker: {maker}",
        cause="ROCm runs only on AMD GPUs",
        next_step=f"`{lists}` lists the GPUs that it supports",
    )


def _old(query: str, table: GpuTable) -> Unsupported | None:
    """The generation that ROCm does not run on and that has this target, PCI id or name."""
    key = _key(query)
    for generation in table.unsupported:
        if query in (*generation.targets, *generation.pci_ids) or (
            key and any(key in _keys(name) for name in generation.names)
        ):
            return generation
    return None


def _of_old(text: str, old: Unsupported, table: GpuTable) -> InputError:
    driver = f"; start Linux with {' '.join(old.kernel)}, or its amdgpu driver leaves the card alone"
    return InputError(
        f"ROCm does not run on {text.strip()!r}: {old.name}",
        cause=f"AMD made ROCm for other GPUs; these are {', '.join(old.targets)} to compilers",
        next_step=f"{table.without}{driver if old.kernel else ''}"
        if table.without
        else f"`{table.lists}` lists the GPUs that it supports",
    )


def _unknown(text: str, key: str, table: GpuTable) -> InputError:
    by_key = {_key(name): (name, gpu) for gpu in reversed(table.gpus) for name in (*gpu.names, gpu.target)}
    close = get_close_matches(key, by_key, n=4, cutoff=0.6)
    near = [by_key[candidate] for candidate in sorted(close, key=lambda candidate: -_shared(key, candidate))]
    descriptions = [gpu.target if name == gpu.target else f"{name} ({gpu.target})" for name, gpu in near]
    return InputError(
        f"unknown GPU target {text.strip()!r}",
        cause=f"similar names: {', '.join(descriptions)}"
        if descriptions
        else "no known target, product, code name, family or PCI id is similar",
        next_step=f"give a known name, such as {near[0][1].target}; `{table.lists}` lists all"
        if near
        else f"`{table.lists}` lists all",
    )


def _shared(first: str, second: str) -> int:
    """How many characters two words begin with alike."""
    unlike = (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(unlike, min(len(first), len(second)))
