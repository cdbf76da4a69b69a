"""torchaudio: resampling, spectrograms, filters and alignment, against references written out here."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from smoke.cases.registered import registered_for_gpus
from smoke.cases.transforms import direct
from smoke.compare import compare
from smoke.model import AbsentError, Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ROOMS = ("_make_rir_filter", "_simulate_rir", "ray_tracing")
"""Operators that upstream has for the CPU alone."""


def cases() -> Iterator[Case]:
    for run in (loads, on_gpus, resample, spectrogram, mel_scale, lfilter, forced_align):
        yield Case("audio", run.__name__.replace("_", "-"), run)


def imported() -> Any:
    """torchaudio. Raises AbsentError where it is not installed."""
    try:
        import torchaudio
    except ModuleNotFoundError as error:
        if error.name != "torchaudio":
            raise
        raise AbsentError("torchaudio is not installed") from None
    return torchaudio


def near(context: Context, got: Any, expected: Sequence[float], what: str) -> Told:
    """Compare the values of a tensor in fp32 with a list."""
    reference = context.torch.tensor(expected, dtype=context.torch.float64)
    found = compare(context, got.flatten(), reference, "filter", "fp32", what)
    return Told(f"{found.values} values, worst error {found.error:.2g}", found.error, found.tolerance)


def loads(context: Context) -> Told:
    """The package imports, and with it its compiled extension: its files are in the process."""
    from smoke.cases.about import mapped

    torchaudio = imported()
    files = [path for path in mapped() if "torchaudio" in str(path)]
    if not files:
        raise WrongError("torchaudio's compiled extension did not load")
    return Told(
        f"torchaudio {torchaudio.__version__} on torch {context.torch.__version__}, {len(files)} files"
    )


def on_gpus(context: Context) -> Told:
    """Alignment has code for GPUs where torch was built for these. It needs no GPU.

    Upstream compiles it for CUDA alone, and the catalog's edit for ROCm. The transducer has none there: its
    blocks wait for each other by warps of 32. Rooms are simulated on the CPU alone.
    """
    imported()
    return registered_for_gpus(context, "torchaudio", besides=("rnnt", *ROOMS))


def noise(seed: int, count: int) -> list[float]:
    draw = random.Random(seed)
    return [draw.uniform(-0.2, 0.2) for _ in range(count)]


def resample(context: Context) -> Told:
    """A sine of 440 Hz from 44100 to 16000 Hz: as the windowed sinc says, and, away from the ends, a sine."""
    torch, functional = context.torch, imported().functional
    source, target, count = 44100, 16000, 2205
    wave = [math.sin(2 * math.pi * 440 * i / source) for i in range(count)]
    found = functional.resample(torch.tensor(wave, device=context.device), source, target)
    told = near(context, found, windowed_sinc(wave, source, target), "windowed sinc")
    sine = [math.sin(2 * math.pi * 440 * i / target) for i in range(len(found))]
    apart = max(abs(one - other) for one, other in zip(found.tolist()[50:-50], sine[50:-50], strict=False))
    if not apart <= 2e-3:
        raise WrongError(f"{apart:.2g} from the sine that it should be")
    return told


def windowed_sinc(wave: list[float], source: int, target: int) -> list[float]:
    """Band-limited interpolation, a sinc under a Hann window of 6 zero crossings, cut off at 0.99.

    Written from the sum over all samples, https://ccrma.stanford.edu/~jos/resample/, not as a convolution.
    """
    crossings, cutoff = 6, 0.99 * min(source, target)
    values = []
    for n in range(math.ceil(len(wave) * target / source)):
        total = 0.0
        for j, sample in enumerate(wave):
            t = (j / source - n / target) * cutoff
            if abs(t) < crossings:
                sinc = math.sin(math.pi * t) / (math.pi * t) if t else 1.0
                total += sample * sinc * math.cos(math.pi * t / crossings / 2) ** 2
        values.append(total * cutoff / source)
    return values


def spectrogram(context: Context) -> Told:
    """Power of frames of 64 samples, 16 apart, under a Hann window, summed directly."""
    torch, transforms = context.torch, imported().transforms
    wave = torch.tensor(noise(23, 500))
    made = transforms.Spectrogram(n_fft=64, hop_length=16, center=False).to(context.device)
    window = torch.tensor(
        [0.5 - 0.5 * math.cos(2 * math.pi * n / 64) for n in range(64)], dtype=torch.float64
    )
    frames = wave.double().unfold(-1, 64, 16) * window
    expected = direct(frames)[:, :33].abs().square().t()
    return near(context, made(wave.to(context.device)), expected.flatten().tolist(), "power")


def mel_scale(context: Context) -> Told:
    """Triangles of 20 bands on the scale 2595 log10(1 + f / 700), laid over a spectrum of 201 lines."""
    torch, transforms = context.torch, imported().transforms
    lines, bands, rate = 201, 20, 16000
    spectrum = torch.tensor([abs(one) for one in noise(29, lines * 5)]).reshape(lines, 5)
    made = transforms.MelScale(n_mels=bands, sample_rate=rate, n_stft=lines).to(context.device)
    top = 2595 * math.log10(1 + rate / 2 / 700)
    edges = [700 * (10 ** (top * one / (bands + 1) / 2595) - 1) for one in range(bands + 2)]
    places = [rate // 2 * one / (lines - 1) for one in range(lines)]
    expected = []
    for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
        weights = [max(0.0, min((at - low) / (middle - low), (high - at) / (high - middle))) for at in places]
        expected += [
            math.fsum(weight * value for weight, value in zip(weights, column, strict=False))
            for column in spectrum.double().t().tolist()
        ]
    return near(context, made(spectrum.to(context.device)), expected, "mel")


def lfilter(context: Context) -> Told:
    """Noise through a filter of second order, against its difference equation."""
    torch, functional = context.torch, imported().functional
    a, b = (1.0, -1.2, 0.5), (0.2, 0.3, 0.1)
    wave = noise(17, 400)
    expected: list[float] = []
    for n in range(len(wave)):
        fed = sum(b[k] * wave[n - k] for k in range(3) if n >= k)
        expected.append((fed - sum(a[k] * expected[n - k] for k in (1, 2) if n >= k)) / a[0])
    there = [torch.tensor(one, device=context.device) for one in (wave, a, b)]
    return near(context, functional.lfilter(*there, clamp=False), expected, "lfilter")


def forced_align(context: Context) -> Told:
    """The best path of a CTC emission for given labels: spells them, and no path scores higher."""
    torch, functional = context.torch, imported().functional
    frames, classes, labels = 14, 6, [2, 2, 5, 1]
    draw = random.Random(19)
    drawn = torch.tensor([[draw.uniform(-3, 3) for _ in range(classes)] for _ in range(frames)])
    emission = drawn.log_softmax(-1)
    logs = emission.double().tolist()
    target = torch.tensor([labels], device=context.device)
    try:
        path, scores = functional.forced_align(emission[None].to(context.device), target, blank=0)
    except (NotImplementedError, RuntimeError) as error:
        if context.on_gpu and ("not compiled" in str(error) or "Could not run" in str(error)):
            raise AbsentError(
                f"this torchaudio has it for the CPU only: {str(error).splitlines()[0][:120]}"
            ) from None
        raise
    steps = path[0].tolist()
    spelled = [step for i, step in enumerate(steps) if step != 0 and (i == 0 or step != steps[i - 1])]
    if spelled != labels:
        raise WrongError(f"the path {steps} spells {spelled} where {labels} is expected")
    along = [logs[i][step] for i, step in enumerate(steps)]
    told = near(context, scores[0], along, "scores")
    if not abs(sum(along) - best_score(logs, labels)) <= 1e-4:
        raise WrongError(
            f"the path scores {sum(along):.6f} where the best scores {best_score(logs, labels):.6f}"
        )
    return told


def best_score(logs: list[list[float]], labels: list[int]) -> float:
    """The highest sum of log probabilities of a CTC path that spells `labels`; class 0 is blank."""
    states = [0]
    for label in labels:
        states += [label, 0]
    best = [logs[0][states[0]], logs[0][states[1]]] + [-math.inf] * (len(states) - 2)
    for frame in logs[1:]:
        last = best
        best = []
        for i, state in enumerate(states):
            skips = i >= 2 and state != 0 and state != states[i - 2]
            before = last[max(0, i - 1) : i + 1] + ([last[i - 2]] if skips else [])
            best.append(max(before) + frame[state])
    return max(best[-2:])
