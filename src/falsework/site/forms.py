"""The forms single values must have: names, networks, addresses, keys. Each says what is wrong and what is right."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import TypeVar

from falsework.site.model import IPAddress, IPNetwork
from falsework.site.problems import Problems
from falsework.site.reading import Read
from falsework.site.yaml_source import shortened

T = TypeVar("T")

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}")
_CIDR = re.compile(r"([^/%\s]+)/(0|[1-9][0-9]{0,2})")
_DURATION = re.compile(r"([1-9][0-9]{0,5})(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_INTERFACE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,14}")
_NFS_PATH = re.compile(r"/[-A-Za-z0-9_./]*")

MAX_CLUSTER_NAME = 54
"""63 for a DNS label, less 9 for `\\052.apps.`, as DNS servers write the wildcard in front of the name."""
SSH_KEY_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


class FormError(Exception):
    """A value does not have its form."""

    def __init__(self, what: str, right: str) -> None:
        super().__init__(what)
        self.what = what
        self.right = right


def formed(read: Read[str], name: str, form: Callable[[str, str], T], problems: Problems) -> Read[T]:
    """Turn text into what it stands for; a problem at its place when that fails."""
    if not read:
        return Read(None, read.place)
    try:
        return Read(form(read.got(), name), read.place)
    except FormError as wrong:
        problems.error(read.where(), wrong.what, wrong.right)
        return Read(None, read.place)


def dns_label(text: str, name: str) -> str:
    if len(text) > 63:
        raise FormError(f"{name} has {len(text)} characters", "a DNS label has at most 63")
    if not LABEL.fullmatch(text):
        raise FormError(
            f"{name} {shortened(text)!r} is not a DNS label",
            "use lower-case letters, digits and '-', with a letter or digit at both ends",
        )
    return text


def dns_subdomain(text: str, name: str) -> str:
    if len(text) > 253:
        raise FormError(f"{name} has {len(text)} characters", "a DNS name has at most 253")
    for label in text.split("."):
        if not LABEL.fullmatch(label) or len(label) > 63:
            raise FormError(
                f"{name} {shortened(text)!r} is not a DNS name",
                "use labels of at most 63 lower-case letters, digits and '-', with dots between them",
            )
    return text


def base_domain(text: str, name: str) -> str:
    return dns_subdomain(text.removesuffix("."), name)


def cluster_name(text: str, name: str) -> str:
    if len(text) > MAX_CLUSTER_NAME:
        raise FormError(
            f"{name} has {len(text)} characters", f"use at most {MAX_CLUSTER_NAME}: DNS needs the rest for *.apps"
        )
    return dns_subdomain(text, name)


def mac_address(text: str, name: str) -> str:
    mac = text.lower()
    if not _MAC.fullmatch(mac):
        raise FormError(
            f"{name} {shortened(text)!r} is not a MAC address", "write six pairs of hex digits: 52:54:00:8b:a1:17"
        )
    mac = mac.replace("-", ":")
    if mac == "00:00:00:00:00:00" or int(mac[:2], 16) & 1:
        raise FormError(
            f"{name} {mac} is no address of a single machine",
            "the first pair must be even, and not all may be zero: 52:54:00:8b:a1:17",
        )
    return mac


def address(text: str, name: str) -> IPAddress:
    try:
        if "%" in text:
            raise ValueError
        return ip_address(text)
    except ValueError:
        raise FormError(f"{name} {shortened(text)!r} is not an IP address", "write it like 192.168.126.2") from None


def ipv4_address(text: str, name: str) -> IPv4Address:
    found = address(text, name)
    if not isinstance(found, IPv4Address):
        raise FormError(
            f"{name} {found} is an IPv6 address", "machines have IPv4 addresses only, such as 192.168.126.2"
        )
    return found


def network(text: str, name: str) -> IPNetwork:
    """A network as OpenShift wants it: with a prefix length, and the address is the network's own."""
    match = _CIDR.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        found = ip_network(text, strict=False)
    except ValueError:
        raise FormError(f"{name} {shortened(text)!r} is not a network", "write it like 192.168.126.0/24") from None
    written = ip_address(match.group(1))
    if written != found.network_address:
        raise FormError(f"{name} {text} is an address inside a network", f"the network itself is {found}")
    if written.is_unspecified:
        raise FormError(f"{name} {text} stands for every address", "name one network, such as 192.168.126.0/24")
    return found


def ipv4_network(text: str, name: str) -> IPv4Network:
    found = network(text, name)
    if not isinstance(found, IPv4Network):
        raise FormError(f"{name} {found} is an IPv6 network", "machines have IPv4 addresses only: 192.168.126.0/24")
    return found


def lab_network(text: str, name: str) -> IPv4Network:
    found = ipv4_network(text, name)
    if found.is_multicast or found.is_loopback or found.is_link_local or found.is_reserved:
        raise FormError(f"{name} {found} is not for machines", "use a private network, such as 192.168.126.0/24")
    if not 8 <= found.prefixlen <= 28:
        raise FormError(
            f"{name} {found} has the wrong size", "use a prefix length from 8 to 28, such as 192.168.126.0/24"
        )
    return found


def interface_name(text: str, name: str) -> str:
    if not _INTERFACE.fullmatch(text):
        raise FormError(
            f"{name} {shortened(text)!r} cannot name a bridge",
            "use at most 15 letters, digits, '-', '_' and '.', with a letter or digit first",
        )
    return text


def duration(text: str, name: str) -> float:
    """Seconds; without a unit there is no telling seconds from minutes, so there must be one."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise FormError(f"{name} {shortened(text)!r} is not a time", "write a number with s, m or h, such as 90s or 5m")
    seconds = int(match.group(1)) * _SECONDS[match.group(2)]
    if not 10 <= seconds <= 86400:
        raise FormError(f"{name} {text} is out of range", "use a time from 10s to 24h")
    return float(seconds)


def nfs_path(text: str, name: str) -> str:
    if not _NFS_PATH.fullmatch(text) or any(part in (".", "..") for part in text.split("/")) or text.strip("/") == "":
        raise FormError(
            f"{name} {shortened(text)!r} cannot be exported",
            "write an absolute path of letters, digits, '-', '_' and '.', such as /var/nfs/registry",
        )
    return "/" + "/".join(part for part in text.split("/") if part)


def looks_like_a_placeholder(text: str) -> bool:
    """Words left to be replaced: `PASTE-SSH-PUBLIC-KEY`, or a shell's `$(< file)` that no shell has seen."""
    return text.startswith("$(") or len(text.split()) == 1


def ssh_keys(text: str) -> tuple[str, ...]:
    """The lines of authorized_keys. What is wrong is told without the line: it may be a private key."""
    if "PRIVATE KEY" in text:
        raise FormError("sshKey holds a private key", "paste the public one: the file that ends in .pub")
    lines = [line.strip() for line in text.splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(keys, start=1):
        if not _is_ssh_key(line):
            which = f"line {number} of sshKey" if len(keys) > 1 else "sshKey"
            raise FormError(
                f"{which} is not a public SSH key", "paste the line of a .pub file: ssh-ed25519 AAAA… comment"
            )
    return tuple(keys)


def _is_ssh_key(line: str) -> bool:
    words = line.split()
    for kind, blob in itertools.pairwise(words):
        if kind not in SSH_KEY_TYPES:
            continue
        try:
            decoded = base64.b64decode(blob, validate=True)
        except (binascii.Error, ValueError):
            return False
        prefix = len(kind).to_bytes(4, "big") + kind.encode()
        return decoded.startswith(prefix) and len(decoded) > len(prefix)
    return False


def pull_secret(text: str) -> str:
    """The JSON text itself. Nothing of it goes into a message."""
    right = 'paste the JSON text as it was given to you: {"auths": {HOST: {"auth": …}}}'
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise FormError("pullSecret is not JSON", right) from None
    auths = found.get("auths") if isinstance(found, dict) else None
    if not isinstance(auths, dict) or not auths:
        raise FormError("pullSecret has no 'auths'", right)
    for entry in auths.values():
        if not isinstance(entry, dict) or not any(
            isinstance(entry.get(key), str) and entry[key] for key in ("auth", "credsStore")
        ):
            raise FormError("an entry of pullSecret has neither 'auth' nor 'credsStore'", right)
    return text
