"""`rocwright completion SHELL`."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script: `eval "$(rocwright completion bash)"` in ~/.bashrc."""
    from click.shell_completion import get_completion_class

    from rocwright.cli import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "rocwright", "_ROCWRIGHT_COMPLETE").source())
