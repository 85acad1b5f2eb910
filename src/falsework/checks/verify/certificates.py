"""Certificates in use: shown by servers, and kept in the cluster. Those who renew them do so with a third of their life
left, a kubelet with a tenth: below that, somebody does not do its work."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed
from falsework.checks.verify.own import own
from falsework.checks.verify.said import short
from falsework.kube.client import Object
from falsework.site import ports
from falsework.site.problems import counted

_LEAST = 0.05
"""The part of a certificate's life that must be left."""
_KUBELET = 10250


def checks(facts: Facts) -> Iterator[Check]:
    yield own(
        "certificates/served",
        "openssl s_client -connect ADDRESS:PORT",
        "every server's certificate is valid, and not about to expire",
        lambda: _served(facts),
    )
    yield own(
        "certificates/kept",
        "oc get secrets -A --field-selector type=kubernetes.io/tls",
        "every certificate is valid, and not about to expire",
        lambda: kept(facts.cluster.certificate_secrets, _now()),
    )
    yield own(
        "certificates/administrator",
        "falsework certs",
        "the administrator's certificate is not about to expire",
        lambda: _administrator(facts),
        Place.HOST,
    )


def _now() -> datetime:
    from falsework.assets.pki import utc_now

    return utc_now()


def _served(facts: Facts) -> Verdict:
    site = facts.site
    servers = [(f"{machine.name}:{ports.API}", str(machine.address), ports.API) for machine in site.masters]
    servers += [
        (f"{machine.name}:{_KUBELET}", str(machine.address), _KUBELET) for machine in (*site.masters, *site.workers)
    ]
    servers.append(
        (f"{site.api_int_host}:{ports.MACHINE_CONFIG_SERVER}", str(site.api_vip), ports.MACHINE_CONFIG_SERVER)
    )
    shown: list[tuple[str, bytes]] = []
    wrong: list[str] = []
    for name, address, port in servers:
        try:
            shown.append((name, facts.asker.certificate(address, port)))
        except OSError as error:
            wrong.append(f"{name}: {error}")
    return _judged(shown, _now(), wrong)


def kept(secrets: list[Object], now: datetime) -> Verdict:
    found = [
        (f"{secret['metadata']['namespace']}/{secret['metadata']['name']}", content)
        for secret in secrets
        if (content := base64.b64decode((secret.get("data") or {}).get("tls.crt") or ""))
    ]
    return _judged(found, now)


def _administrator(facts: Facts) -> Verdict:
    path = facts.lab.site_folder / "tls" / "admin-kubeconfig-client.crt"
    return _judged([(path.name, path.read_bytes())], _now())


def _judged(certificates: list[tuple[str, bytes]], now: datetime, wrong: list[str] | None = None) -> Verdict:
    """The first of each: what follows in a file are its signers."""
    from falsework.assets.pki import life_of, load_certificates

    problems = list(wrong or ())
    first: tuple[datetime, str] | None = None
    for name, pem in certificates:
        try:
            life = life_of(load_certificates(pem)[0])
        except (ValueError, IndexError):
            problems.append(f"{name}: not a certificate")
            continue
        if not life.begins <= now < life.ends - (life.ends - life.begins) * _LEAST:
            problems.append(f"{name}: from {life.begins:%Y-%m-%d %H:%M} to {life.ends:%Y-%m-%d %H:%M} UTC")
        first = min(first or (life.ends, name), (life.ends, name))
    if problems:
        return failed(short("; ".join(problems)))
    if first is None:
        return passed("there are none")
    return passed(
        f"{counted(len(certificates), 'certificate')}; the first to expire is {first[1]}, {first[0]:%Y-%m-%d %H:%M} UTC"
    )
