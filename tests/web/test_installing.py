"""The line that installs from this server: pip takes it as it stands."""

from __future__ import annotations

import shlex

from rocwheel_samples.tables import each
from rocwright.records.model import Artifact
from rocwright.web.installing import IndexAt, install_line

MADE = Artifact(
    component="torch",
    step="torch",
    filename="torch-2.9.0+rocm7.1-cp312-cp312-linux_x86_64.whl",
    sha256="0" * 64,
    size=1,
    gpu=("gfx1151",),
)
HERE = "http://127.0.0.1:8642"
LINE = "pip install --index-url http://127.0.0.1:8642{}/simple/ 'torch==2.9.0+rocm7.1'"


def test_the_line_installs_this_version_from_the_view_of_its_gpu() -> None:
    assert install_line(MADE, IndexAt(server=HERE, views=["gfx1151"])) == LINE.format("/gfx1151")
    assert install_line(MADE, IndexAt(server=HERE, views=["gfx1103"])) == LINE.format("")
    two = MADE.model_copy(update={"gpu": ("gfx1151", "gfx1103")})
    assert install_line(two, IndexAt(server=HERE, views=["gfx1151"])) == LINE.format("")


@each("name", ["<script>", "torch.tar.gz", "a-$(reboot)-py3-none-any.whl"])
def test_what_is_no_wheel_has_no_line(name: str) -> None:
    assert install_line(MADE.model_copy(update={"filename": name}), IndexAt(server=HERE)) == ""


def test_where_the_server_asks_for_a_token_the_line_has_a_place_for_it() -> None:
    line = install_line(MADE, IndexAt(server=HERE, token=True))
    assert " http://me:TOKEN@127.0.0.1:8642/simple/ " in line


@each(
    ("server", "host"),
    [
        ("http://builds.example.org:8642", "builds.example.org:8642"),
        ("http://192.0.2.7:80", "192.0.2.7:80"),
        ("https://builds.example.org", None),
        ("http://localhost:8642", None),
        ("http://127.0.0.2:8642", None),
        ("http://[::1]:8642", None),
    ],
)
def test_pip_is_told_to_trust_plain_http_from_elsewhere_alone(server: str, host: str | None) -> None:
    words = shlex.split(install_line(MADE, IndexAt(server=server)))
    assert words[2:4] == (["--trusted-host", host] if host else ["--index-url", f"{server}/simple/"])
