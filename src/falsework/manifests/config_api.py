"""config.openshift.io/v1: what the cluster is meant to be, and what it is."""

from __future__ import annotations

from falsework.manifests.schema import (
    CIDR,
    DOMAIN,
    UUID,
    Column,
    Definition,
    Schema,
    anything,
    condition,
    conditions,
    listing,
    mapping,
    moment,
    record,
    reference,
    text,
    truth,
    whole,
)

GROUP = "config.openshift.io"


def definitions() -> list[Definition]:
    return [
        _cluster_version(),
        _cluster_operator(),
        _proxy(),
        _infrastructure(),
        _ingress(),
        _dns(),
        _network(),
        _scheduler(),
        _feature_gate(),
        _open("APIServer", "apiservers", "Serving certificates, auditing and encryption of the API."),
        _open("Authentication", "authentications", "How people prove who they are."),
        _open("Console", "consoles", "The web console.", {"consoleURL": text()}),
        _open("Image", "images", "Which registries images may come from."),
        _open("OAuth", "oauths", "Identity providers."),
    ]


def _open(kind: str, plural: str, about: str, status: dict[str, Schema] | None = None) -> Definition:
    """Kept for those who bring objects of it; nothing here acts on it."""
    file = f"0000_10_config-operator_01_{plural}.crd.yaml"
    return Definition(file, GROUP, kind, plural, about, record(more=True), record(status, more=True))


def _release() -> dict[str, Schema]:
    return {"version": text(), "image": text(), "url": text(), "channels": listing(text(), distinct=True)}


def _cluster_version() -> Definition:
    override = record(
        {"group": text(), "kind": text(), "namespace": text(), "name": text(), "unmanaged": truth()},
        ("group", "kind", "name", "namespace", "unmanaged"),
    )
    overrides = listing(override, longest=2000)
    history = record(
        {
            "state": text("Completed", "Partial"),
            "startedTime": moment(),
            "completionTime": moment() | {"nullable": True},
            "version": text(),
            "image": text(),
            "verified": truth(),
            "acceptedRisks": text(),
        },
        ("state", "startedTime", "completionTime", "image", "verified"),
    )
    capabilities = {
        "baselineCapabilitySet": text(),
        "additionalEnabledCapabilities": listing(text(), distinct=True),
    }
    return Definition(
        "0000_00_cluster-version-operator_01_clusterversions.crd.yaml",
        GROUP,
        "ClusterVersion",
        "clusterversions",
        "The release the cluster runs, and how far it has come with it.",
        record(
            {
                "clusterID": text(pattern=UUID),
                "channel": text(),
                "upstream": text(),
                "desiredUpdate": record(
                    {"version": text(), "image": text(), "force": truth(), "architecture": text()}, nullable=True
                ),
                "overrides": overrides,
                "capabilities": record(capabilities),
                "signatureStores": listing(record({"url": text()}, more=True)),
            },
            ("clusterID",),
        ),
        record(
            {
                "desired": record(_release(), ("image", "version"), more=True),
                "history": listing(history, longest=100),
                "observedGeneration": whole(wide=True),
                "versionHash": text(),
                "capabilities": anything(),
                "conditions": conditions(),
                "availableUpdates": listing(record(_release(), more=True), nullable=True),
                "conditionalUpdates": listing(anything()),
            },
            ("availableUpdates", "desired", "observedGeneration", "versionHash"),
        ),
        columns=(
            Column("Version", '.status.history[?(@.state=="Completed")].version'),
            Column("Available", condition("Available")),
            Column("Progressing", condition("Progressing")),
            Column("Since", condition("Progressing", "lastTransitionTime"), "date"),
            Column("Status", condition("Progressing", "message")),
        ),
    )


def _cluster_operator() -> Definition:
    related = record(
        {"group": text(), "resource": text(), "namespace": text(), "name": text()}, ("group", "name", "resource")
    )
    return Definition(
        "0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
        GROUP,
        "ClusterOperator",
        "clusteroperators",
        "What one operator says of itself and of what it operates.",
        record(),
        record(
            {
                "conditions": conditions(),
                "versions": listing(record({"name": text(), "version": text()}, ("name", "version"))),
                "relatedObjects": listing(related),
                "extension": anything(nullable=True),
            }
        ),
        short=("co",),
        columns=(
            Column(
                "Version",
                '.status.versions[?(@.name=="operator")].version',
                description="The version the operator is at.",
            ),
            Column("Available", condition("Available"), description="Whether the operator is running and stable."),
            Column("Progressing", condition("Progressing"), description="Whether the operator is processing changes."),
            Column("Degraded", condition("Degraded"), description="Whether the operator is degraded."),
            Column(
                "Since",
                condition("Available", "lastTransitionTime"),
                "date",
                "The time the operator's Available status last changed.",
            ),
        ),
    )


def _proxy() -> Definition:
    addresses = {"httpProxy": text(), "httpsProxy": text(), "noProxy": text()}
    return Definition(
        "0000_03_config-operator_01_proxies.crd.yaml",
        GROUP,
        "Proxy",
        "proxies",
        "The way out of the cluster.",
        record(addresses | {"trustedCA": reference(), "readinessEndpoints": listing(text())}),
        record(addresses),
    )


def _infrastructure() -> Definition:
    platform = record({"type": text()}, more=True)
    topology = text("HighlyAvailable", "HighlyAvailableArbiter", "SingleReplica", "DualReplica", "External")
    return Definition(
        "0000_10_config-operator_01_infrastructures.crd.yaml",
        GROUP,
        "Infrastructure",
        "infrastructures",
        "What the cluster stands on.",
        record({"cloudConfig": record({"name": text(), "key": text()}), "platformSpec": platform}),
        record(
            {
                "apiServerURL": text(),
                "apiServerInternalURI": text(),
                "controlPlaneTopology": topology,
                "infrastructureTopology": text("HighlyAvailable", "SingleReplica", "DualReplica"),
                "cpuPartitioning": text("None", "AllNodes", default="None"),
                "etcdDiscoveryDomain": text(),
                "infrastructureName": text(),
                "platform": text(),
                "platformStatus": platform,
            }
        ),
    )


def _ingress() -> Definition:
    return Definition(
        "0000_10_config-operator_01_ingresses.crd.yaml",
        GROUP,
        "Ingress",
        "ingresses",
        "Where applications are reached.",
        record({"domain": text(pattern=DOMAIN), "appsDomain": text()}, more=True),
        record(
            {"defaultPlacement": text("", "ControlPlane", "Workers"), "componentRoutes": listing(anything())},
            more=True,
        ),
    )


def _dns() -> Definition:
    zone = record({"id": text(), "tags": mapping(text())})
    return Definition(
        "0000_10_config-operator_01_dnses.crd.yaml",
        GROUP,
        "DNS",
        "dnses",
        "The cluster's domain.",
        record({"baseDomain": text(pattern=DOMAIN), "publicZone": zone, "privateZone": zone, "platform": anything()}),
        record(more=True),
    )


def _network() -> Definition:
    cluster = listing(record({"cidr": text(pattern=CIDR), "hostPrefix": whole(0, 128)}, ("cidr",)))
    networks = {"clusterNetwork": cluster, "serviceNetwork": listing(text(pattern=CIDR)), "networkType": text()}
    return Definition(
        "0000_10_config-operator_01_networks.crd.yaml",
        GROUP,
        "Network",
        "networks",
        "The addresses of pods and Services.",
        record(
            networks
            | {
                "externalIP": record(
                    {
                        "policy": record(
                            {"allowedCIDRs": listing(text()), "rejectedCIDRs": listing(text())}, nullable=True
                        ),
                        "autoAssignCIDRs": listing(text()),
                    }
                ),
                "serviceNodePortRange": text(pattern=r"^[0-9]{1,5}-[0-9]{1,5}$"),
                "networkDiagnostics": anything(),
            }
        ),
        record(networks | {"clusterNetworkMTU": whole(), "migration": anything(), "conditions": conditions()}),
    )


def _scheduler() -> Definition:
    return Definition(
        "0000_10_config-operator_01_schedulers.crd.yaml",
        GROUP,
        "Scheduler",
        "schedulers",
        "Where pods may run.",
        record(
            {
                "mastersSchedulable": truth(),
                "defaultNodeSelector": text(),
                "policy": reference(),
                "profile": text("", "LowNodeUtilization", "HighNodeUtilization", "NoScoring"),
                "profileCustomizations": anything(),
            }
        ),
        record(more=True),
    )


def _feature_gate() -> Definition:
    custom = record({"enabled": listing(text()), "disabled": listing(text())}, nullable=True)
    features = text("", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "OKD")
    return Definition(
        "0000_10_config-operator_01_featuregates.crd.yaml",
        GROUP,
        "FeatureGate",
        "featuregates",
        "Which features are on.",
        record({"featureSet": features, "customNoUpgrade": custom}),
        record({"conditions": conditions(), "featureGates": listing(anything())}),
    )
