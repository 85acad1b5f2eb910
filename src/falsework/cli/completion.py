"""falsework completion: what a shell needs to complete our commands."""

from __future__ import annotations

import argparse

from falsework.cli.site_folder import add_folder_option, examined_in

_MACHINES = "machines"


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a script that completes falsework's commands, options, stages and machines. For bash: "
        "source <(falsework completion bash); zsh: source <(falsework completion zsh); fish: falsework completion "
        "fish | source. `machines` prints the names of the site's machines, which the scripts ask for."
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish", _MACHINES))
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.shell == _MACHINES:
        _print_machines(options)
        return 0
    from falsework.cli import full_parser
    from falsework.completion import bash, fish, words, zsh

    scripts = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}
    parser = full_parser()
    print(scripts[options.shell](words.read(parser), parser.prog), end="")
    return 0


def _print_machines(options: argparse.Namespace) -> None:
    """A site that cannot be read has none to offer: whoever completes a word is not told of problems."""
    from falsework.site.records import everyone

    site = examined_in(options.dir).site
    if site is not None:
        print("\n".join(machine.name for machine in everyone(site)))
