"""Says whether torchaudio's compiled operators give right values, against references written out here."""

from __future__ import annotations

import math
import random
import sys

import check_lines


def loads(device: str) -> str:
    """The package imports, and with it the compiled extension: its files are in the process."""
    import torch
    import torchaudio

    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(maxsplit=5)[-1].strip() for line in maps if "torchaudio" in line}
    assert any(file.endswith(".so") for file in files), "torchaudio's compiled extension did not load"
    return f"torchaudio {torchaudio.__version__} on torch {torch.__version__}, {len(files)} compiled files"


def resample(device: str) -> str:
    """A sine of 440 Hz from 44100 to 16000 Hz: as the windowed sinc says, and, away from the ends, a sine."""
    import torch
    import torchaudio

    source, target, count = 44100, 16000, 2205
    wave = [math.sin(2 * math.pi * 440 * i / source) for i in range(count)]
    found = torchaudio.functional.resample(torch.tensor(wave, device=device), source, target).tolist()
    told = check_lines.near("windowed sinc", found, windowed_sinc(wave, source, target), 2e-5)
    sine = [math.sin(2 * math.pi * 440 * i / target) for i in range(len(found))]
    check_lines.near("sine", found[50:-50], sine[50:-50], 2e-3)
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


def lfilter(device: str) -> str:
    """Noise through a filter of second order, against its difference equation."""
    import torch
    import torchaudio

    a, b = (1.0, -1.2, 0.5), (0.2, 0.3, 0.1)
    draw = random.Random(17)
    wave = [draw.uniform(-0.2, 0.2) for _ in range(400)]
    expected: list[float] = []
    for n in range(len(wave)):
        fed = sum(b[k] * wave[n - k] for k in range(3) if n >= k)
        expected.append((fed - sum(a[k] * expected[n - k] for k in (1, 2) if n >= k)) / a[0])
    found = torchaudio.functional.lfilter(
        torch.tensor(wave, device=device),
        torch.tensor(a, device=device),
        torch.tensor(b, device=device),
        clamp=False,
    )
    return check_lines.near("lfilter", found.tolist(), expected, 1e-5)


def forced_align(device: str) -> str:
    """The best path of a CTC emission for given labels: spells them, and no path scores higher."""
    import torch
    import torchaudio

    frames, classes, labels = 14, 6, [2, 2, 5, 1]
    draw = random.Random(19)
    emission = torch.tensor(
        [[draw.uniform(-3, 3) for _ in range(classes)] for _ in range(frames)]
    ).log_softmax(-1)
    logs = emission.double().tolist()
    path, scores = torchaudio.functional.forced_align(
        emission[None].to(device), torch.tensor([labels], device=device), blank=0
    )
    steps = path[0].tolist()
    spelled = [step for i, step in enumerate(steps) if step != 0 and (i == 0 or step != steps[i - 1])]
    assert spelled == labels, f"the path {steps} spells {spelled} where {labels} is expected"
    check_lines.near("scores", scores[0].tolist(), [logs[i][step] for i, step in enumerate(steps)], 1e-5)
    score = sum(logs[i][step] for i, step in enumerate(steps))
    return check_lines.near("score of the path", [score], [best_score(logs, labels)], 1e-4)


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


if __name__ == "__main__":
    checks = [
        ("audio-loads", loads),
        ("resample", resample),
        ("lfilter", lfilter),
        ("forced-align", forced_align),
    ]
    sys.exit(check_lines.run(checks, cpu_only=("forced-align",)))
