"""A view into the lab for programs of the host: its network and name server, the release's programs, the cluster's key.

A program in there is in the lab's own network namespace, and in a mount namespace where two files of /etc are others.
Everything else is the host's; the host's own files stay as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG
from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.lab.folder import NETWORK, Lab
from falsework.machines.namespaces import is_namespace
from falsework.release import oc
from falsework.site.model import Site

if TYPE_CHECKING:
    # Every kubectl would load it, and none needs it.
    from falsework.release.inventory import Release

PROGRAMS = ("kubectl", "crictl", "etcdctl", "etcdutl")
_NSSWITCH = Path("/etc/nsswitch.conf")
_HOSTS = "hosts: files dns"
# A link is followed to the file it means, which need not be there; nor need the file itself. Then all of /etc is
# shown through ours. A cache of names (nscd) would answer from the host's network: its socket is hidden.
_SHOW = (
    "etc=$1; shift; if [ ! -e /etc/resolv.conf ] || [ ! -e /etc/nsswitch.conf ]; then "
    'mount -t overlay -o "ro,lowerdir=$etc:/etc" view /etc; fi; '
    'for name in resolv.conf nsswitch.conf; do mount --bind "$etc/$name" "/etc/$name"; done; '
    'if [ -d /run/nscd ]; then mount -t tmpfs view /run/nscd; fi; exec "$@"'
)
_PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))


@dataclass(frozen=True)
class View:
    site: Site
    lab: Lab

    @property
    def kubeconfig(self) -> Path:
        return self.lab.site_folder / ADMIN_KUBECONFIG

    def command(self, words: Sequence[str | Path]) -> tuple[str, ...]:
        """What to run on the host so that `words` run in the view, at a terminal too."""
        self.require()
        etc = self._write_files()
        return (
            *("nsenter", f"--net={self.lab.netns_path(NETWORK)}", "--"),
            *("unshare", "--mount", "--propagation", "private", "--"),
            *("sh", "-ec", _SHOW, "view", str(etc)),
            *map(str, words),
        )

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The person's own, with the lab's programs first. Neither the host's proxies nor another cluster's etcd are
        what a command in there should talk to."""
        kept = {
            name: value
            for name, value in given.items()
            if name.lower() not in _PROXIES and not name.startswith("ETCDCTL_")
        }
        path = given.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        ours = f"{self.lab.programs}:{path}"
        return {
            **kept,
            "PATH": ours,
            # For a shell whose settings say otherwise.
            "FALSEWORK_PATH": ours,
            "KUBECONFIG": str(self.kubeconfig),
            "FALSEWORK_LAB": self.site.cluster_name,
        }

    def require(self) -> None:
        """Say what is in the way of looking into the lab, if anything is."""
        require_root()
        if not is_namespace(self.lab.netns_path(NETWORK)):
            raise FalseworkError(
                f"the lab of {self.lab.site_folder} is not up",
                cause=f"there is no network namespace {self.lab.netns(NETWORK)}",
                fix=f"run `falsework up --dir {self.lab.site_folder}`, or name another folder with --dir",
            )

    def program(self, name: str) -> Path:
        """A program of the release that was put into the lab."""
        path = self.lab.programs / name
        if not path.exists():
            raise FalseworkError(
                f"{name} is not in the lab yet",
                cause=f"{path} is missing",
                fix=f"run `falsework up --dir {self.lab.site_folder}`",
            )
        return path

    def bash_settings(self) -> Path:
        """What bash reads as it starts: the person's own settings, and a prompt that tells where one is."""
        path = self.lab.root / "view" / "bashrc"
        text = '[ -r ~/.bashrc ] && . ~/.bashrc\nPATH=$FALSEWORK_PATH\nPS1="[$FALSEWORK_LAB] $PS1"\n'
        write_file(path, text.encode())
        return path

    def _write_files(self) -> Path:
        etc = self.lab.root / "view" / "etc"
        contents = {
            "resolv.conf": f"nameserver {self.site.helper.address}\nsearch {self.site.domain}\n",
            "nsswitch.conf": _own_nsswitch(),
        }
        for name, text in contents.items():
            path = etc / name
            # Replaced only if it has to be: another view may have the old one in use.
            if not (path.is_file() and path.read_text() == text):
                write_file(path, text.encode())
        return etc


def require_root() -> None:
    if os.geteuid() != 0:
        raise FalseworkError("only root can look into a lab", fix="run the same command with sudo")


def programs_are_there(lab: Lab) -> bool:
    return all((lab.programs / name).exists() for name in (*PROGRAMS, oc.NAME))


def install_programs(lab: Lab, release: Release) -> None:
    """The programs of the release a person uses from the host."""
    for name in PROGRAMS:
        release.install(name, lab.programs)
    write_file(lab.programs / oc.NAME, oc.SCRIPT.encode(), 0o755)


def _own_nsswitch() -> str:
    """The host's, but for names of hosts: no service of the host's is asked, which would ask in the host's network."""
    try:
        text = _NSSWITCH.read_text()
    except FileNotFoundError:
        return f"{_HOSTS}\n"
    lines = [line for line in text.splitlines() if not re.match(r"\s*hosts\s*:", line)]
    return "\n".join([*lines, _HOSTS, ""])
