"""operator.openshift.io/v1 and the image registry's: what operators are told, and what they did."""

from __future__ import annotations

from falsework.manifests.schema import (
    CIDR,
    DOMAIN,
    Definition,
    Schema,
    anything,
    conditions,
    listing,
    mapping,
    moment,
    record,
    reference,
    selector,
    text,
    truth,
    whole,
)

GROUP = "operator.openshift.io"
IMAGE_REGISTRY_GROUP = "imageregistry.operator.openshift.io"

_LEVELS = ("", "Normal", "Debug", "Trace", "TraceAll")


def definitions() -> list[Definition]:
    return [
        _static_pod("0000_12_etcd_01_etcds.crd.yaml", "Etcd", "etcds", "etcd on the masters.", _etcd_only()),
        _static_pod(
            "0000_20_kube-apiserver_01_kubeapiservers.crd.yaml",
            "KubeAPIServer",
            "kubeapiservers",
            "The API server on the masters.",
        ),
        _static_pod(
            "0000_25_kube-controller-manager_01_kubecontrollermanagers.crd.yaml",
            "KubeControllerManager",
            "kubecontrollermanagers",
            "The controller manager on the masters.",
            {"useMoreSecureServiceCA": truth(default=False)},
        ),
        _static_pod(
            "0000_25_kube-scheduler_01_kubeschedulers.crd.yaml",
            "KubeScheduler",
            "kubeschedulers",
            "The scheduler on the masters.",
        ),
        _ingress_controller(),
        _dns(),
        _network(),
        _plain("0000_50_console_01_consoles.crd.yaml", "Console", "consoles", "The web console's operator."),
        _plain(
            "0000_50_machine-approver_01_machineapprovers.crd.yaml",
            "MachineApprover",
            "machineapprovers",
            "Who decides about the certificate requests of machines. Not one of OpenShift's.",
        ),
        _plain(
            "0000_50_cluster-storage-operator_01_storages.crd.yaml",
            "Storage",
            "storages",
            "Where volumes come from.",
        ),
        _plain(
            "0000_80_machine-config_01_machineconfigurations.crd.yaml",
            "MachineConfiguration",
            "machineconfigurations",
            "What the machine config operator is told, and what it did.",
        ),
        _image_registry(),
    ]


def _operator_spec() -> dict[str, Schema]:
    return {
        "managementState": text(pattern="^(Managed|Unmanaged|Force|Removed)$"),
        "logLevel": text(*_LEVELS, default="Normal"),
        "operatorLogLevel": text(*_LEVELS, default="Normal"),
        "observedConfig": anything(nullable=True),
        "unsupportedConfigOverrides": anything(nullable=True),
    }


def _operator_status() -> dict[str, Schema]:
    generation = record(
        {
            "group": text(),
            "resource": text(),
            "namespace": text(),
            "name": text(),
            "hash": text(),
            "lastGeneration": whole(wide=True),
        },
        ("group", "lastGeneration", "name", "namespace", "resource"),
    )
    return {
        "conditions": conditions(),
        "generations": listing(generation),
        "observedGeneration": whole(wide=True),
        "readyReplicas": whole(),
        "version": text(),
    }


def _static_pod(file: str, kind: str, plural: str, about: str, spec: dict[str, Schema] | None = None) -> Definition:
    node = record(
        {
            "nodeName": text(),
            "nodeUID": text(),
            "currentRevision": whole(0),
            "targetRevision": whole(0),
            "lastFailedRevision": whole(0),
            "lastFailedTime": moment(),
            "lastFailedReason": text(),
            "lastFailedCount": whole(),
            "lastFallbackCount": whole(),
            "lastFailedRevisionErrors": listing(text()),
        },
        ("nodeName",),
        more=True,
    )
    return Definition(
        file,
        GROUP,
        kind,
        plural,
        about,
        record(
            _operator_spec()
            | {
                # One cannot take away or leave alone what holds the cluster up.
                "managementState": text(pattern="^(Managed|Force)$"),
                "forceRedeploymentReason": text(),
                "failedRevisionLimit": whole(),
                "succeededRevisionLimit": whole(),
            }
            | (spec or {}),
            more=True,
        ),
        record(
            _operator_status()
            | {
                "latestAvailableRevision": whole(0),
                "latestAvailableRevisionReason": text(),
                "nodeStatuses": listing(node, key="nodeName"),
            },
            more=True,
        ),
    )


def _etcd_only() -> dict[str, Schema]:
    return {
        "controlPlaneHardwareSpeed": text("", "Standard", "Slower"),
        "backendQuotaGiB": whole(8, 32) | {"default": 8},
    }


def _ingress_controller() -> Definition:
    strategy = record(
        {"type": text("LoadBalancerService", "HostNetwork", "Private", "NodePortService")}, ("type",), more=True
    )
    return Definition(
        "0000_50_ingress_00_ingresscontrollers.crd.yaml",
        GROUP,
        "IngressController",
        "ingresscontrollers",
        "Routers: how traffic comes in.",
        record(
            {
                "domain": text(pattern=DOMAIN),
                "replicas": whole(0),
                "endpointPublishingStrategy": strategy,
                "defaultCertificate": reference(),
                "namespaceSelector": selector(),
                "routeSelector": selector(),
                "nodePlacement": record(
                    {"nodeSelector": selector(), "tolerations": listing(anything())},
                ),
                "unsupportedConfigOverrides": anything(nullable=True),
            },
            more=True,
        ),
        record(
            {
                "availableReplicas": whole(),
                "conditions": conditions(),
                "domain": text(),
                "endpointPublishingStrategy": strategy,
                "namespaceSelector": selector(),
                "routeSelector": selector(),
                "observedGeneration": whole(wide=True),
                "selector": text(),
                "tlsProfile": anything(),
            },
            more=True,
        ),
        namespaced=True,
        required=(),
        scaled_by="availableReplicas",
    )


def _dns() -> Definition:
    forwarding = {
        "policy": text("Random", "RoundRobin", "Sequential"),
        "protocolStrategy": text("", "TCP"),
        "transportConfig": anything(),
    }
    upstream = record(
        {"type": text("SystemResolvConf", "Network"), "address": text(), "port": whole(1, 65535)}, ("type",)
    )
    server = record(
        {
            "name": text(),
            "zones": listing(text()),
            "forwardPlugin": record(forwarding | {"upstreams": listing(text(), longest=15)}, more=True),
        },
        more=True,
    )
    placement = record({"nodeSelector": mapping(text()), "tolerations": listing(anything())})
    return Definition(
        "0000_70_dns_00_dnses.crd.yaml",
        GROUP,
        "DNS",
        "dnses",
        "Names inside the cluster.",
        record(
            {
                "managementState": text(pattern="^(Managed|Unmanaged|Force|Removed)$"),
                "logLevel": text("Normal", "Debug", "Trace", default="Normal"),
                "operatorLogLevel": text("Normal", "Debug", "Trace", default="Normal"),
                "servers": listing(server),
                "upstreamResolvers": record(forwarding | {"upstreams": listing(upstream, longest=15)}, more=True),
                "cache": record({"positiveTTL": text(), "negativeTTL": text()}),
                "nodePlacement": placement,
            },
            more=True,
        ),
        record(
            {"clusterIP": text(), "clusterDomain": text(), "conditions": conditions()},
            more=True,
        ),
        required=(),
    )


def _network() -> Definition:
    flannel = record({"backend": text("vxlan", "host-gw"), "mtu": whole(576, 65535), "vxlanPort": whole(1, 65535)})
    networks = {
        "clusterNetwork": listing(record({"cidr": text(pattern=CIDR), "hostPrefix": whole(0, 128)}, ("cidr",))),
        "serviceNetwork": listing(text(pattern=CIDR)),
        "defaultNetwork": record({"type": text(), "flannelConfig": flannel}, more=True),
        "disableMultiNetwork": truth(),
        "deployKubeProxy": truth(),
    }
    return Definition(
        "0000_70_network_01_networks.crd.yaml",
        GROUP,
        "Network",
        "networks",
        "How pods and Services are connected.",
        record(_operator_spec() | networks, more=True),
        record(_operator_status(), more=True),
        required=(),
    )


def _plain(file: str, kind: str, plural: str, about: str) -> Definition:
    """An operator that is told what all are told."""
    return Definition(
        file, GROUP, kind, plural, about, record(_operator_spec(), more=True), record(_operator_status(), more=True)
    )


def _image_registry() -> Definition:
    kinds = ("azure", "emptyDir", "gcs", "ibmcos", "oss", "pvc", "s3", "swift")
    given = " + ".join(f"(has(self.{kind}) ? 1 : 0)" for kind in kinds)
    fields: dict[str, Schema] = {kind: anything() for kind in kinds}
    fields["emptyDir"] = record()
    fields["pvc"] = record({"claim": text()})
    storage = record(fields | {"managementState": text(pattern="^(Managed|Unmanaged)$")})
    storage["x-kubernetes-validations"] = [{"rule": f"{given} <= 1", "message": "exactly one storage type can be used"}]
    return Definition(
        "0000_11_image-registry_01_configs.crd.yaml",
        IMAGE_REGISTRY_GROUP,
        "Config",
        "configs",
        "The cluster's own image registry.",
        record(
            _operator_spec()
            | {
                "replicas": whole(0),
                "storage": storage,
                "httpSecret": text(),
                "defaultRoute": truth(),
                "readOnly": truth(),
                "disableRedirect": truth(),
                "rolloutStrategy": text(pattern="^(RollingUpdate|Recreate)$"),
                "proxy": record({"http": text(), "https": text(), "noProxy": text()}),
                "nodeSelector": anything(),
                "tolerations": listing(anything()),
            },
            ("managementState", "replicas"),
            more=True,
        ),
        record(
            _operator_status() | {"storage": anything(), "storageManaged": truth()},
            more=True,
        ),
    )
