"""Pictures of a terminal with 80 columns in docs/pictures, of what commands print there.

    .venv/bin/python -m tools.terminal_pictures [NAME..]

`run` builds llama-vulkan first where it is not there, some ten minutes. Nothing here runs on a GPU.
"""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURES = Path(__file__).parents[1] / "docs/pictures"
COLUMNS = 80
ROCWRIGHT = (sys.executable, "-m", "rocwright")
SHOWN: dict[str, tuple[str, ...]] = {
    "targets": ("targets", "RX 580"),
    "stacks": ("stacks",),
    "run": ("run", "llama-vulkan", "--model", "tiny", "--detach", "--try"),
}
AFTER = {"run": ("stop", "llama-vulkan")}

# Without the fonts that rich would have a browser fetch from elsewhere.
FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, monospace }}
.{unique_id}-title {{ font: bold 18px sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def printed(words: tuple[str, ...]) -> str:
    """All that a command writes to a terminal of that width."""
    inner, outer = pty.openpty()
    ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    env = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    with subprocess.Popen([*ROCWRIGHT, *words], stdin=outer, stdout=outer, stderr=outer, env=env) as child:
        os.close(outer)
        pieces = []
        while True:
            try:
                piece = os.read(inner, 65536)
            except OSError:  # how the other end is closed
                break
            pieces.append(piece)
    os.close(inner)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {child.returncode}")
    return b"".join(pieces).decode().replace("\r\n", "\n")


def draw(name: str) -> None:
    """One picture."""
    words = SHOWN[name]
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    typed = " ".join(f'"{word}"' if " " in word else word for word in words)
    console.print(Text(f"$ rocwright {typed}", style="bold"))
    console.print(Text.from_ansi(printed(words)), soft_wrap=False)
    text = console.export_svg(title="", theme=MONOKAI, code_format=FORMAT, unique_id=name)
    (PICTURES / f"terminal-{name}.svg").write_text(text)
    if name in AFTER:
        printed(AFTER[name])


if __name__ == "__main__":
    for each in sys.argv[1:] or SHOWN:
        draw(each)
