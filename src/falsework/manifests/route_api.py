"""route.openshift.io/v1: under which names applications are reached from outside.

In OpenShift a server of its own has these. Here they are a definition like the others, so what that server would refuse
is refused by the schema, or by the router, which says so in the route's status.
"""

from __future__ import annotations

from falsework.manifests.schema import (
    DOMAIN,
    Column,
    Definition,
    Schema,
    conditions,
    listing,
    number_or_text,
    record,
    text,
    whole,
)

GROUP = "route.openshift.io"

_HEAVIEST = 256
_ALTERNATES = 3
_ALWAYS = 100


def definitions() -> list[Definition]:
    return [_route()]


def _route() -> Definition:
    host = text(pattern=f"{DOMAIN}|^$", longest=253)
    policy = text("None", "Subdomain", "")
    return Definition(
        "0000_50_ingress_00_routes.crd.yaml",
        GROUP,
        "Route",
        "routes",
        "A name under which a Service is reached from outside.",
        _valid(
            record(
                {
                    "host": host,
                    "subdomain": text(pattern=f"{DOMAIN}|^$", longest=253),
                    "path": text(pattern="^/|^$"),
                    "to": _target(),
                    "alternateBackends": listing(_target(), longest=_ALTERNATES),
                    "port": record({"targetPort": number_or_text()}, ("targetPort",)),
                    "tls": _tls(),
                    "wildcardPolicy": policy | {"default": "None"},
                    "httpHeaders": record(more=True),
                },
                ("to",),
            )
        ),
        record({"ingress": listing(_admission(policy))}),
        columns=(
            Column("Host/Port", ".status.ingress[0].host"),
            Column("Path", ".spec.path"),
            Column("Services", ".spec.to.name"),
            Column("Port", ".spec.port.targetPort"),
            Column("Termination", ".spec.tls.termination"),
            Column("Wildcard", ".spec.wildcardPolicy"),
        ),
        namespaced=True,
    )


def _target() -> Schema:
    return record(
        {
            "kind": text("Service", "", default="Service"),
            "name": text(pattern="."),
            "weight": whole(0, _HEAVIEST) | {"default": _ALWAYS},
        },
        ("name",),
    )


def _tls() -> Schema:
    return record(
        {
            "termination": text("edge", "passthrough", "reencrypt"),
            "insecureEdgeTerminationPolicy": text("None", "Allow", "Redirect", ""),
            "certificate": text(),
            "key": text(),
            "caCertificate": text(),
            "destinationCACertificate": text(),
            "externalCertificate": record({"name": text()}),
        },
        ("termination",),
    )


def _valid(spec: Schema) -> Schema:
    """What OpenShift's server refuses, too."""
    ours = "self.tls.termination == 'passthrough'"
    insecure = "self.tls.insecureEdgeTerminationPolicy"
    spec["x-kubernetes-validations"] = [
        {
            "rule": f"!has(self.tls) || !({ours}) || !has(self.path) || self.path == ''",
            "message": "passthrough termination does not support paths",
        },
        {
            "rule": f"!has(self.tls) || !({ours}) || !has({insecure}) || {insecure} != 'Allow'",
            "message": "passthrough termination does not allow insecure connections",
        },
    ]
    return spec


def _admission(policy: Schema) -> Schema:
    """What one router says of it."""
    return record(
        {
            "host": text(),
            "routerName": text(),
            "routerCanonicalHostname": text(),
            "wildcardPolicy": policy,
            "conditions": conditions(),
        }
    )
