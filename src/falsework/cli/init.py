"""falsework init: the first install-config.yaml and site.yaml, from questions or flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from falsework.errors import FalseworkError, UsageError
from falsework.files import write_file
from falsework.site import defaults, forms, install_config, site_config
from falsework.site.forms import FormError
from falsework.site.load import examine_text
from falsework.site.model import Distribution, IPAddress, Provider
from falsework.site.reading import one_of
from falsework.site.starter import Answers, install_config_text, site_text

T = TypeVar("T")


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write install-config.yaml and site.yaml into a folder, with comments that explain them. At a terminal what "
        "no flag says is asked for; in a script it has its default. What is written has passed `falsework validate`. "
        "Files that are there stay as they are, unless --force is given."
    )
    parser.add_argument("--dir", type=Path, default=Path(), metavar="D", help="the folder (default: this one)")
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    parser.add_argument("--yes", action="store_true", help="ask nothing, even at a terminal")
    for question in QUESTIONS:
        question.add_flag(parser)
    parser.add_argument("--nat", action=argparse.BooleanOptionalAction, help="whether machines reach the world outside")
    parser.add_argument("--upstream-dns", action="append", default=[], metavar="IP", help="may be given several times")
    parser.add_argument(
        "--mac",
        action="append",
        default=[],
        metavar="NAME=MAC",
        help="a machine's MAC address; for each, with --provider manual",
    )
    parser.add_argument("--ssh-key-file", type=Path, metavar="FILE", help="public key that may log in as core")
    parser.add_argument("--pull-secret-file", type=Path, metavar="FILE", help="needed with --distribution openshift")


@dataclass(frozen=True)
class Question:
    flag: str
    text: str
    form: Callable[[str, str], Any]
    default: Callable[[dict[str, Any]], Any]

    @property
    def key(self) -> str:
        return self.flag.replace("-", "_")

    def add_flag(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(f"--{self.flag}", metavar="VALUE", help=self.text[0].lower() + self.text[1:])


def _member(kind: type[Distribution | Provider]) -> Callable[[str, str], Any]:
    def form(text: str, name: str) -> Any:
        if text not in list(kind):
            raise FormError(f"{name} {text!r} is unknown", f"use {one_of(kind)}")
        return kind(text)

    return form


def _number(minimum: int) -> Callable[[str, str], int]:
    def form(text: str, name: str) -> int:
        if not (text.isascii() and text.isdigit() and minimum <= int(text[:9]) <= install_config.MAX_REPLICAS):
            raise FormError(
                f"{name} {text!r} is not usable", f"write a number from {minimum} to {install_config.MAX_REPLICAS}"
            )
        return int(text)

    return form


QUESTIONS = (
    Question("name", "Name of the cluster", forms.cluster_name, lambda _: defaults.CLUSTER_NAME),
    Question("base-domain", "Domain it is put under", forms.base_domain, lambda _: defaults.BASE_DOMAIN),
    Question(
        "distribution",
        "Distribution: kubernetes or openshift",
        _member(Distribution),
        lambda _: Distribution.KUBERNETES,
    ),
    Question(
        "provider",
        "Machines: nspawn (containers here), libvirt (virtual machines) or manual (real ones)",
        _member(Provider),
        lambda known: defaults.provider_of(known["distribution"]),
    ),
    Question("network", "Network the machines are on", forms.lab_network, lambda _: defaults.LAB_CIDR),
    Question("masters", "Number of masters (odd)", _number(1), lambda _: defaults.MASTERS),
    Question("workers", "Number of workers", _number(0), lambda _: defaults.WORKERS_WITHOUT_A_FILE),
)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    targets = [folder / name for name in (install_config.FILE, site_config.FILE)]
    there = [str(path) for path in targets if path.exists() or path.is_symlink()]
    if there and not options.force:
        raise UsageError(
            f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} there already; nothing was written",
            fix="edit what is there, name another folder with --dir, or write over it with --force",
        )
    answers = _answers(options, asking=sys.stdin.isatty() and not options.yes)
    texts = install_config_text(answers).encode(), site_text(answers).encode()
    examined = examine_text(*texts)
    if examined.errors:
        raise UsageError(
            "these answers make no site that can be used; nothing was written",
            cause="; ".join(problem.what for problem in examined.errors),
            fix="; ".join(dict.fromkeys(problem.right for problem in examined.errors)),
        )
    try:
        # Whoever may not read the secrets in it may not read the file.
        write_file(targets[0], texts[0], mode=0o600)
        write_file(targets[1], texts[1])
    except OSError as error:
        raise FalseworkError(
            f"{error.filename or folder} cannot be written",
            cause=error.strerror,
            fix="name a folder of yours with --dir, then run the same command again",
        ) from None
    for problem in examined.warnings:
        print(problem)
    print(f"wrote {targets[0]} and {targets[1]}")
    return 0


def _answers(options: argparse.Namespace, asking: bool) -> Answers:
    known: dict[str, Any] = {}
    for question in QUESTIONS:
        flag = getattr(options, question.key)
        default = question.default(known)
        if flag is not None:
            known[question.key] = _from_flag(question.form, flag, f"--{question.flag}")
        elif asking:
            known[question.key] = _ask(question.text, question.form, str(default))
        else:
            known[question.key] = default
    distribution: Distribution = known["distribution"]
    ssh_key = _file(options.ssh_key_file)
    if not ssh_key and asking:
        ssh_key = _ask("File with your public SSH key (empty: none)", _readable, _likely_ssh_key())
    pull_secret = _file(options.pull_secret_file)
    if not pull_secret and distribution is Distribution.OPENSHIFT:
        if not asking:
            raise UsageError("distribution openshift needs a pull secret", fix="name its file with --pull-secret-file")
        pull_secret = _ask("File with your pull secret", _readable, "")
    return Answers(
        cluster_name=known["name"],
        base_domain=known["base_domain"],
        distribution=distribution,
        provider=known["provider"],
        network=known["network"],
        masters=known["masters"],
        workers=known["workers"],
        nat=defaults.nat_of(distribution) if options.nat is None else options.nat,
        upstream_dns=tuple(_from_flag(_server, text, "--upstream-dns") for text in options.upstream_dns),
        ssh_key=ssh_key,
        pull_secret=pull_secret,
        macs=_macs(options.mac, known["provider"], known["masters"], known["workers"], asking),
    )


def _macs(flags: list[str], provider: Provider, masters: int, workers: int, asking: bool) -> dict[str, str]:
    names = [name for name, _ in defaults.machine_names(masters, workers)]
    macs: dict[str, str] = {}
    for flag in flags:
        name, _, mac = flag.partition("=")
        if name not in names:
            raise UsageError(
                f"--mac names a machine {name!r} that is none", fix=f"use {one_of(names[:8])}, as in NAME=MAC"
            )
        macs[name] = _from_flag(forms.mac_address, mac, f"--mac {name}=")
    if provider is not Provider.MANUAL:
        return macs
    missing = [name for name in names if name not in macs]
    if missing and not asking:
        raise UsageError(
            f"with provider manual every machine's MAC address is needed; missing: {', '.join(missing)}",
            fix=f"add --mac {missing[0]}=52:54:00:… for each of them",
        )
    return macs | {name: _ask(f"MAC address of {name}", forms.mac_address, "") for name in missing}


def _server(text: str, name: str) -> IPAddress:
    return forms.address(text, name)


def _from_flag(form: Callable[[str, str], T], text: str, flag: str) -> T:
    try:
        return form(text, flag)
    except FormError as wrong:
        raise UsageError(wrong.what, fix=wrong.right) from None


def _ask(text: str, form: Callable[[str, str], T], default: str) -> T:
    """Ask until the answer has its form; an empty one stands for the default."""
    while True:
        try:
            answer = input(f"{text} [{default}]: " if default else f"{text}: ").strip() or default
        except EOFError:
            print()
            raise UsageError(
                "the questions were left unanswered; nothing was written", fix="run it again, or use flags"
            ) from None
        try:
            return form(answer, "this answer")
        except FormError as wrong:
            print(f"  {wrong.what}; {wrong.right}")


def _readable(text: str, _: str) -> str:
    if not text:
        return ""
    try:
        return _content(Path(text).expanduser())
    except OSError as error:
        raise FormError(f"{text} cannot be read: {error.strerror}", "name a file that can") from None


def _file(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return _content(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", cause=error.strerror, fix="name a file that can") from None


def _content(path: Path) -> str:
    with path.open(errors="replace") as file:
        return file.read(1_000_000).strip()


def _likely_ssh_key() -> str:
    candidates = (Path.home() / ".ssh" / f"id_{kind}.pub" for kind in ("ed25519", "ecdsa", "rsa"))
    return next((str(path) for path in candidates if path.is_file()), "")
