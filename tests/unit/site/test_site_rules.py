# ruff: noqa: E501 - a case of a table reads best on one line
"""Every rule: one mistake gives exactly one problem, at the right line and column, with the right words."""

from __future__ import annotations

import pytest
from site_files import INSTALL, OPENSHIFT_SITE, PULL_SECRET, SITE, SSH_KEY, broken, examined

from falsework.site.problems import Severity

# (what is replaced, by what with ‸ before the mistake, words of `what`, words of `right`)
Case = tuple[str, str, str, str]

INSTALL_CASES: list[Case] = [
    ("apiVersion: v1\n", "apiVersion: ‸v2\n", "apiVersion is 'v2'", "v1, v1beta3 or v1beta4"),
    ("apiVersion: v1\nbase", "‸base", "apiVersion is missing", "apiVersion: v1"),
    ("baseDomain: example.com", "baseDomain: ‸Example.com", "baseDomain 'Example.com' is not a DNS name", "lower-case"),
    ("baseDomain: example.com", "baseDomain: ‸example..com", "is not a DNS name", "dots between"),
    ("baseDomain: example.com", "baseDomain: ‸example.com..", "is not a DNS name", "dots between"),
    ("baseDomain: example.com", "baseDomain: ‸12", "baseDomain is a number, not text", "in quotes"),
    ("baseDomain: example.com", "baseDomain: ‸[a]", "baseDomain is a list, not text", "write text"),
    (
        "baseDomain: example.com",
        "baseDomain: ‸" + ".".join(["abcdefghi"] * 26),
        "baseDomain has 259 characters",
        "at most 253",
    ),
    (
        "baseDomain: example.com",
        "baseDomain: ‸" + ".".join(["abcdefghi"] * 6),
        "the cluster's domain demo.abcdefghi",
        "shorten metadata.name or baseDomain",
    ),
    ("  name: demo", "  name: ‸on", "metadata.name is a yes/no value, not text", "in quotes"),
    ("  name: demo", "  name: ‸de_mo", "metadata.name 'de_mo' is not a DNS name", "lower-case"),
    ("  name: demo", "  name: ‸" + "a" * 55, "metadata.name has 55 characters", "at most 54"),
    ("metadata:\n  name: demo", "metadata:\n  ‸creationTimestamp: null", "metadata.name is missing", "name the cluster"),
    ("metadata:\n  name: demo", "metadata: ‸demo", "metadata is text, not keys with values", "KEY: VALUE"),
    ("  name: demo", "  name: demo\n  ‸labls: {}", "the key 'metadata.labls' is unknown", "known here"),
    ("  name: master", "  name: ‸control", "controlPlane.name is 'control'", "write master"),
    ("  replicas: 3", "  replicas: ‸0", "controlPlane.replicas is 0", "from 1"),
    ("  replicas: 3", "  replicas: ‸three", "controlPlane.replicas is 'three', not a whole number", "whole number"),
    ("  replicas: 3", "  replicas: ‸3.0", "not a whole number", "whole number"),
    ("  replicas: 3", "  replicas: ‸'3'", "not a whole number", "whole number"),
    ("  replicas: 3", "  replicas: ‸5", "replicas is 5, but site.yaml lists 3 masters", "write 3 here"),
    ("  replicas: 2", "  replicas: ‸-1", "compute[0].replicas is -1", "from 0"),
    ("  replicas: 2", "  replicas: ‸3", "replicas is 3, but site.yaml lists 2 workers", "write 2 here (or 0"),
    ("- name: worker", "- name: ‸edge", "compute[0].name is 'edge'", "write worker"),
    ("- name: worker\n", "- ‸platform: {}\n", "compute[0].name is missing", "name: worker"),
    (
        "networking:\n",
        "- name: ‸worker\n  replicas: 2\nnetworking:\n",
        "the pool 'worker' is there twice (first in line 11)",
        "keep one",
    ),
    ("  name: master\n", "  name: master\n  platform: {‸aws: {}}\n", "controlPlane.platform.aws", "platform: {}"),
    ("hyperthreading: Enabled\n  architecture: amd64\n  replicas: 2", "hyperthreading: ‸On\n  replicas: 2", "compute[0].hyperthreading is 'On'", "Enabled or Disabled"),
    ("architecture: amd64\n  replicas: 3", "architecture: ‸x86\n  replicas: 3", "controlPlane.architecture is 'x86'", "amd64, arm64"),
    ("architecture: amd64\n  replicas: 2", "architecture: ‸arm64\n  replicas: 2", "workers are arm64 and masters amd64", "same architecture"),
    ("OVNKubernetes", "‸OpenShiftSDN", "OpenShiftSDN is no longer offered", "OVNKubernetes"),
    ("OVNKubernetes", "‸Kuryr", "Kuryr is no longer offered", "OVNKubernetes"),
    ("OVNKubernetes", "‸my network", "cannot name a network type", "OVNKubernetes"),
    ("- cidr: 10.1.0.0/24", "- cidr: ‸10.1.0.0", "networking.machineNetwork[0].cidr '10.1.0.0' is not a network", "192.168.126.0/24"),
    ("- cidr: 10.1.0.0/24", "- cidr: ‸10.1.0.0/33", "is not a network", "192.168.126.0/24"),
    ("- cidr: 10.1.0.0/24", "- cidr: ‸10.1.0.0/255.255.255.0", "is not a network", "192.168.126.0/24"),
    ("- cidr: 10.1.0.0/24", "- cidr: ‸10.1.0.7/24", "10.1.0.7/24 is an address inside a network", "itself is 10.1.0.0/24"),
    ("- cidr: 10.1.0.0/24", "- cidr: ‸0.0.0.0/0", "stands for every address", "name one network"),
    ("- cidr: 10.1.0.0/24", "- cidr: 10.1.0.0/24\n  - cidr: ‸10.1.0.0/28", "machineNetwork 10.1.0.0/28 overlaps machineNetwork 10.1.0.0/24", "of its own"),
    ("- cidr: 10.1.0.0/24", "- ‸{}", "networking.machineNetwork[0].cidr is missing", "cidr: NETWORK"),
    ("- cidr: 10.1.0.0/24", "- ‸10.1.0.0/24", "networking.machineNetwork[0] is text, not keys", "KEY: VALUE"),
    ("- cidr: 10.1.0.0/24", "- cidr: 10.1.0.0/24\n    ‸hostPrefix: 23", "'networking.machineNetwork[0].hostPrefix' is unknown", "known here: cidr"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸172.16.0.0/12", "clusterNetwork 172.16.0.0/12 overlaps serviceNetwork 172.30.0.0/16", "of its own"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸10.0.0.0/14", "clusterNetwork 10.0.0.0/14 overlaps machineNetwork 10.1.0.0/24", "of its own"),
    ("- cidr: 10.128.0.0/14", "- cidr: 10.128.0.0/14\n    hostPrefix: 23\n  - cidr: ‸10.130.0.0/16", "overlaps clusterNetwork 10.128.0.0/14", "of its own"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸100.64.0.0/14", "overlaps 100.64.0.0/16, which OVNKubernetes uses inside (join)", "another network"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸100.88.0.0/14", "(transit)", "another network"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸169.254.0.0/16", "(masquerade)", "another network"),
    ("- cidr: 10.128.0.0/14", "- cidr: ‸fd01::/48", "clusterNetwork fd01::/48 is an IPv6 network", "IPv4 only"),
    ("    hostPrefix: 23", "    hostPrefix: ‸13", "hostPrefix 13 does not fit the network 10.128.0.0/14", "from 14 to 30"),
    ("    hostPrefix: 23", "    hostPrefix: ‸31", "hostPrefix 31 does not fit", "from 14 to 30"),
    ("    hostPrefix: 23", "    hostPrefix: ‸x", "hostPrefix is 'x'", "whole number"),
    ("  - cidr: 10.128.0.0/14\n    hostPrefix: 23", "  - ‸cidr: 10.128.0.0/14", "10.128.0.0/14 has no hostPrefix", "hostPrefix: 23"),
    ("    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: 10.64.0.0/16\n    hostPrefix: ‸24", "hostPrefix is 24, but 23 in the entry before", "the same"),
    ("    hostPrefix: 23", "    hostPrefix: 23\n    ‸hostSubnetLength: 9", "old way to say hostPrefix", "keep only hostPrefix"),
    ("    hostPrefix: 23", "    hostSubnetLength: ‸19", "hostPrefix 13 does not fit", "from 14"),
    ("    hostPrefix: 23", "    hostPrefix: ‸16", "room for 4 nodes and the site has 5", "larger"),
    ("  - 172.30.0.0/16", "  - ‸172.0.0.0/8", "serviceNetwork 172.0.0.0/8 is too large", "at least 12"),
    ("  - 172.30.0.0/16", "  - ‸172.30.0.0/29", "no room for the cluster's own services", "at most 28"),
    ("  - 172.30.0.0/16", "  - ‸10.1.0.0/20", "serviceNetwork 10.1.0.0/20 overlaps machineNetwork 10.1.0.0/24", "of its own"),
    ("  - 172.30.0.0/16", "  - 172.30.0.0/16\n  - ‸172.31.0.0/16", "172.31.0.0/16 is a second IPv4 service network", "one of each"),
    ("  - 172.30.0.0/16", "  - ‸{cidr: 172.30.0.0/16}", "serviceNetwork[0] is a group of keys, not a network", "write a network"),
    ("  serviceNetwork:\n  - 172.30.0.0/16", "  serviceNetwork: ‸172.30.0.0/16", "networking.serviceNetwork is text, not a list", "write a list"),
    ("  serviceNetwork:\n  - 172.30.0.0/16", "  serviceNetwork: ‸[]", "networking.serviceNetwork is an empty list", "leave the key out"),
    ("  serviceNetwork:\n", "  ‸serviceCIDR: 172.29.0.0/16\n  serviceNetwork:\n", "serviceCIDR, the old name of serviceNetwork", "keep only serviceNetwork"),
    ("  machineNetwork:\n", "  ‸machineCIDR: 10.9.0.0/16\n  machineNetwork:\n", "machineCIDR, the old name of machineNetwork", "keep only"),
    ("  clusterNetwork:\n", "  ‸clusterNetworks: [{cidr: 10.8.0.0/14, hostPrefix: 23}]\n  clusterNetwork:\n", "clusterNetworks, the old name", "keep only"),
    ("  networkType: OVNKubernetes", "  ‸type: Calico\n  networkType: OVNKubernetes", "type, the old name of networkType", "keep only"),
    ("  networkType:", "  ‸networktyp: X\n  networkType:", "'networking.networktyp' is unknown", "did you mean 'networkType'?"),
    ("platform:\n  none: {}\n", "platform:\n  ‸aws: {}\n", "platform aws is not for machines you bring", "{none: {}}"),
    ("platform:\n  none: {}\n", "platform:\n  ‸baremetal: {}\n  none: {}\n", "platform baremetal is not", "{none: {}}"),
    ("platform:\n  none: {}\n", "platform: ‸{}\n", "platform names none of the platforms", "{none: {}}"),
    ("platform:\n  none: {}\n", "platform:\n  ‸none:\n", "platform names none of the platforms", "{none: {}}"),
    ("platform:\n  none: {}\n", "platform: ‸none\n", "platform is text, not keys", "KEY: VALUE"),
    ("  none: {}", "  none: {‸apiVIP: 10.1.0.5}", "'platform.none.apiVIP' is unknown", "known here"),
    ("fips: false", "fips: ‸maybe", "fips is 'maybe'", "true or false"),
    ("fips: false", "fips: ‸true", "has no FIPS mode", "fips: false"),
    ("publish: External", "publish: ‸Internal", "publish is Internal", "only External"),
    ("publish: External", "publish: ‸Everywhere", "publish is 'Everywhere'", "External or Internal"),
    ("publish: External", "‸publsh: External", "the key 'publsh' is unknown", "did you mean 'publish'?"),
    ("publish: External", "‸machines: []", "the key 'machines' is unknown", "it belongs into site.yaml"),
    ("publish: External", "‸credentialsMode: Manual", "credentialsMode cannot be used here", "leave it out"),
    ("publish: External", "‸bootstrapInPlace: {}", "bootstrapInPlace cannot be used here", "leave it out"),
    ("publish: External", "‸arbiter: {}", "arbiter cannot be used here", "leave it out"),
    ("publish: External", "cpuPartitioningMode: ‸Some", "cpuPartitioningMode is 'Some'", "None or AllNodes"),
    ("publish: External", "additionalTrustBundlePolicy: ‸Never", "additionalTrustBundlePolicy is 'Never'", "Proxyonly or Always"),
    ("publish: External", "additionalTrustBundle: ‸nothing", "holds no certificate", "BEGIN CERTIFICATE"),
    ("publish: External", "proxy: {httpProxy: ‸'https://user:pa55@p'}", "proxy.httpProxy is not a proxy's URL", "http://"),
    ("publish: External", "proxy: ‸{noProxy: x}", "proxy names no proxy", "httpProxy or httpsProxy"),
    ("publish: External", "capabilities: {baselineCapabilitySet: ‸None}", "Ingress is required", "additionalEnabledCapabilities"),
    (f"sshKey: '{SSH_KEY}'", "sshKey: ‸ssh-rsa AAAA nobody", "sshKey is not a public SSH key", ".pub"),
    (f"sshKey: '{SSH_KEY}'", "sshKey: ‸'-----BEGIN OPENSSH PRIVATE KEY----- abc'", "sshKey holds a private key", ".pub"),
    (f"sshKey: '{SSH_KEY}'", f"sshKey: ‸|\n  {SSH_KEY}\n  and another one", "line 2 of sshKey is not a public", ".pub"),
]  # fmt: skip

SITE_CASES: list[Case] = [
    ("distribution: kubernetes", "distribution: ‸okd", "distribution is 'okd'", "kubernetes or openshift"),
    ("distribution: kubernetes", "‸distributoin: kubernetes", "'distributoin' is unknown", "did you mean 'distribution'?"),
    ("distribution: kubernetes", "‸baseDomain: x.y", "'baseDomain' is unknown", "it belongs into install-config.yaml"),
    ("distribution: kubernetes", "apiVersion: ‸v1", "apiVersion is 'v1'", "falsework/v1"),
    ("provider: nspawn", "provider: ‸vmware", "provider is 'vmware'", "nspawn, libvirt or manual"),
    ("keyAlgorithm: rsa", "keyAlgorithm: ‸dsa", "keyAlgorithm is 'dsa'", "ecdsa or rsa"),
    ("network:\n  name: demo", "network:\n  name: ‸a-name-of-16-char", "cannot name a bridge", "at most 15"),
    ("network:\n  name: demo", "network:\n  name: ‸my/net", "cannot name a bridge", "at most 15"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸10.1.0.1/24", "is an address inside a network", "itself is 10.1.0.0/24"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸10.2.0.0/24x", "is not a network", "192.168.126.0/24"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸fd00::/64", "network.cidr fd00::/64 is an IPv6 network", "IPv4 addresses only"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸224.0.0.0/24", "is not for machines", "private network"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸10.1.0.0/29", "has the wrong size", "from 8 to 28"),
    ("  cidr: 10.1.0.0/24", "  cidr: ‸10.1.0.0/23", "is outside networking.machineNetwork", "the same network in both"),
    ("  gateway: 10.1.0.1", "  gateway: ‸10.2.0.1", "10.2.0.1 is outside the lab network 10.1.0.0/24", "10.1.0.0/24"),
    ("  gateway: 10.1.0.1", "  gateway: ‸10.1.0.0", "10.1.0.0 is no host's address", "10.1.0.1 to 10.1.0.254"),
    ("  gateway: 10.1.0.1", "  gateway: ‸10.1.0.999", "network.gateway '10.1.0.999' is not an IP address", "192.168.126.2"),
    ("  gateway: 10.1.0.1", "  gateway: ‸fd00::1", "fd00::1 is an IPv6 address", "IPv4 addresses only"),
    ("  nat: true", "  nat: ‸1", "network.nat is '1'", "true or false"),
    ("  nat: true", "  ‸natt: true", "'network.natt' is unknown", "did you mean 'nat'?"),
    ("  apiVIP: 10.1.0.5", "  apiVIP: ‸10.1.0.1", "10.1.0.1 is the address of the gateway already", "its own"),
    ("  apiVIP: 10.1.0.5", "  apiVIP: ‸10.3.0.1", "outside the lab network", "10.1.0.0/24"),
    ("  ingressVIP: 10.1.0.6", "  ingressVIP: ‸10.1.0.255", "no host's address", "10.1.0.254"),
    ("  name: bastion", "  name: ‸Bastion", "helper.name 'Bastion' is not a DNS label", "lower-case"),
    ("  address: 10.1.0.2\n  mac", "  address: ‸10.1.0.1\n  mac", "address of the gateway already", "its own"),
    ("  memoryMiB: 4096", "  memoryMiB: ‸100", "helper.memoryMiB is 100", "from 256"),
    ("  memoryMiB: 4096", "  ‸memory: 4096", "'helper.memory' is unknown", "did you mean 'memoryMiB'?"),
    ("  worker: {cpus: 4", "  worker: {cpus: ‸0", "sizes.worker.cpus is 0", "from 1"),
    ("  worker: {cpus: 4", "  ‸workers: {cpus: 4", "'sizes.workers' is unknown", "did you mean 'worker'?"),
    ("  role: bootstrap\n", "  role: ‸boostrap\n", "machines[0].role is 'boostrap'", "bootstrap, master or worker"),
    ("- name: bootstrap\n  role: bootstrap", "- ‸name: bootstrap", "machines[0].role is missing", "bootstrap, master or worker"),
    ("- name: bootstrap\n  role", "- ‸role", "machines[0].name is missing", "short host name"),
    ("- name: master-b", "- name: ‸master-a", "the name 'master-a' is the machine in line 23's already", "its own name"),
    ("- name: master-b", "- name: ‸bastion", "the name 'bastion' is the helper's already", "its own name"),
    ("- name: master-b", "- name: ‸api", "one of the cluster's own DNS names", "another name"),
    ("- name: master-b", "- name: ‸etcd-0", "one of the cluster's own DNS names", "another name"),
    ("- name: master-b", "- name: ‸master.b", "'master.b' is not a DNS label", "lower-case"),
    ("- name: master-b", "- name: ‸" + "m" * 64, "machines[2].name has 64 characters", "at most 63"),
    ("- name: master-b", "- name: ‸" + "m" * 37, "has 54 characters", "system:node:NAME"),
    ("- name: bootstrap\n", "- name: ‸" + "b" * 50 + "\n", "has 67 characters", "at most 63"),
    ("52:54:00:00:00:12", "‸52:54:00:00:00:11", "52:54:00:00:00:11 is master-a's already", "its own"),
    ("52:54:00:00:00:12", "‸52:54:00:00:00:02", "52:54:00:00:00:02 is the helper's already", "its own"),
    ("52:54:00:00:00:12", "‸52-54-00-00-00-11", "52:54:00:00:00:11 is master-a's already", "its own"),
    ("52:54:00:00:00:12", "‸52:54:00:00:00", "machines[2].mac '52:54:00:00:00' is not a MAC", "six pairs"),
    ("52:54:00:00:00:12", "‸52:54-00:00:00:12", "is not a MAC", "six pairs"),
    ("52:54:00:00:00:12", "‸53:54:00:00:00:12", "no address of a single machine", "must be even"),
    ("52:54:00:00:00:12", "‸00:00:00:00:00:00", "no address of a single machine", "all may be zero"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.11", "10.1.0.11 is the address of master-a already", "its own"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.1", "10.1.0.1 is the address of the gateway already", "its own"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.2", "10.1.0.2 is the address of the helper already", "its own"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.5", "10.1.0.5 is the address of apiVIP already", "its own"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.6", "10.1.0.6 is the address of ingressVIP already", "its own"),
    ("  address: 10.1.0.12", "  address: ‸10.1.1.12", "outside the lab network 10.1.0.0/24", "10.1.0.0/24"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.255", "no host's address", "to 10.1.0.254"),
    ("  address: 10.1.0.12", "  address: ‸2001:db8::1", "is an IPv6 address", "IPv4 addresses only"),
    ("  address: 10.1.0.12", "  address: ‸10.1.0.012", "is not an IP address", "192.168.126.2"),
    ("  provider: libvirt", "  provider: ‸kvm", "machines[5].provider is 'kvm'", "nspawn, libvirt or manual"),
    ("- name: worker-b\n  role: worker\n  provider: libvirt", "- ‸name: worker-b\n  role: worker\n  provider: manual", "provider manual has no mac", "MAC address"),
    ("- 192.0.2.53", "- ‸dns.example.com", "upstreamDNS[0] 'dns.example.com' is not an IP address", "192.168.126.2"),
    ("- 192.0.2.53", "- ‸10.1.0.2", "would ask 10.1.0.2 and never get an answer", "DNS server outside"),
    ("- 192.0.2.53", "- ‸127.0.0.53", "would ask 127.0.0.53 and never", "DNS server outside"),
    ("- 2001:db8::53", "- ‸192.0.2.53", "192.0.2.53 is in the list twice", "keep one"),
    ("- 2001:db8::53", "-‸", "upstreamDNS[1] is empty, not an IP address", "write an IP address"),
    ("- path: /var/nfs/registry", "- path: ‸var/nfs", "'var/nfs' cannot be exported", "absolute path"),
    ("- path: /var/nfs/registry", "- path: ‸/var/../etc", "cannot be exported", "absolute path"),
    ("- path: /var/nfs/registry", "- path: ‸/", "cannot be exported", "absolute path"),
    ("- path: /var/nfs/registry\n", "- ‸rootSquash: true\n", "nfsShares[0].path is missing", "path: /var/nfs"),
    ("timeouts:\n", "- path: ‸/var//nfs/registry/\ntimeouts:\n", "/var/nfs/registry is shared twice", "keep one"),
    ("  clients: 10.1.0.0/25", "  clients: ‸everyone", "'everyone' is not a network", "192.168.126.0/24"),
    ("  boot: 90s", "  boot: ‸90", "timeouts.boot '90' is not a time", "90s or 5m"),
    ("  boot: 90s", "  boot: ‸1s", "timeouts.boot 1s is out of range", "from 10s to 24h"),
    ("  boot: 90s", "  ‸reboot: 90s", "'timeouts.reboot' is unknown", "did you mean 'boot'?"),
]  # fmt: skip

OPENSHIFT_CASES: list[tuple[str, str, str, str, str]] = [
    ("site", "provider: libvirt\nkey", "provider: ‸nspawn\nkey", "does not run on provider nspawn", "libvirt or manual"),
    ("install", f"'{PULL_SECRET}'", "‸'paste-it-here'", "pullSecret is not JSON", "auths"),
    ("install", f"'{PULL_SECRET}'", "‸'{}'", "pullSecret has no 'auths'", "auths"),
    ("install", f"'{PULL_SECRET}'", "‸'[]'", "pullSecret has no 'auths'", "auths"),
    ("install", f"'{PULL_SECRET}'", "‸'{\"auths\":{}}'", "pullSecret has no 'auths'", "auths"),
    ("install", f"'{PULL_SECRET}'", "‸'{\"auths\":{\"a\":{\"auth\":\"\"}}}'", "neither 'auth' nor 'credsStore'", "auths"),
    ("install", f"'{PULL_SECRET}'", "‸'" + "[" * 100_000 + "'", "pullSecret is not JSON", "auths"),
    ("install", f"sshKey: '{SSH_KEY}'", "sshKey: ‸PASTE-HERE", "sshKey is not a public SSH key", ".pub"),
    ("install", "  - 172.30.0.0/16", "  - ‸fd02::/112", "serviceNetwork has no IPv4 network", "IPv4 network first"),
    ("install", "  - cidr: 10.1.0.0/24", "  - cidr: 10.1.0.0/24\n  - cidr: ‸fd00::/64", "machineNetwork has an IPv6 network, but serviceNetwork has none", "IPv4 alone"),
    ("install", "    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: ‸fd01::/48\n    hostPrefix: 64", "clusterNetwork has an IPv6", "IPv4 alone"),
]  # fmt: skip


def _named(case: tuple[str, ...]) -> str:
    return case[-2]


def _assert_one_problem(install: str, site: str, place: object, what: str, right: str) -> None:
    found = examined(install, site)
    errors = found.errors
    assert [error.place for error in errors] == [place], [str(error) for error in errors]
    assert what in errors[0].what
    assert right in errors[0].right
    assert found.site is None


def test_the_files_that_are_broken_below_are_good() -> None:
    assert [str(problem) for problem in examined().problems] == []
    assert [str(problem) for problem in examined(site=OPENSHIFT_SITE).problems] == []


@pytest.mark.parametrize("case", INSTALL_CASES, ids=_named)
def test_a_mistake_in_install_config(case: Case) -> None:
    old, new, what, right = case
    wrong = broken(INSTALL, old, new, "install-config.yaml")
    _assert_one_problem(wrong.text, SITE, wrong.place, what, right)


@pytest.mark.parametrize("case", SITE_CASES, ids=_named)
def test_a_mistake_in_site(case: Case) -> None:
    old, new, what, right = case
    wrong = broken(SITE, old, new, "site.yaml")
    _assert_one_problem(INSTALL, wrong.text, wrong.place, what, right)


@pytest.mark.parametrize("case", OPENSHIFT_CASES, ids=_named)
def test_a_mistake_that_only_openshift_minds(case: tuple[str, str, str, str, str]) -> None:
    file, old, new, what, right = case
    if file == "install":
        wrong = broken(INSTALL, old, new, "install-config.yaml")
        _assert_one_problem(wrong.text, OPENSHIFT_SITE, wrong.place, what, right)
    else:
        wrong = broken(OPENSHIFT_SITE, old, new, "site.yaml")
        _assert_one_problem(INSTALL, wrong.text, wrong.place, what, right)


def _warnings(install: str | None, site: str | None) -> list[str]:
    found = examined(install, site)
    assert found.site is not None, [str(error) for error in found.errors]
    assert {problem.severity for problem in found.problems} <= {Severity.WARNING}
    return [str(problem) for problem in found.problems]


def test_placeholders_cost_a_warning_where_no_pull_secret_is_needed() -> None:
    install = INSTALL.replace(PULL_SECRET, "paste-it-here").replace(SSH_KEY, "PASTE-SSH-PUBLIC-KEY")
    first, second = _warnings(install, SITE)
    assert first.startswith("install-config.yaml:28:13: warning: pullSecret is not JSON and is not used")
    assert second.startswith("install-config.yaml:29:9: warning: sshKey is a placeholder")


def test_the_network_of_dockers_bridge_costs_a_warning() -> None:
    (warning,) = _warnings(INSTALL.replace("10.128.0.0/14", "172.16.0.0/15"), SITE)
    assert warning.startswith("install-config.yaml:20:11: warning: clusterNetwork 172.16.0.0/15 overlaps 172.17.0.0/16")


def test_many_masters_cost_a_warning() -> None:
    (warning,) = _warnings(INSTALL.replace("replicas: 3", "replicas: 9"), None)
    assert "there are 9 masters" in warning


def test_upstream_dns_out_of_reach_costs_a_warning() -> None:
    (warning,) = _warnings(None, "upstreamDNS:\n- 192.0.2.53\n")
    assert warning.startswith("site.yaml:2:3: warning: the helper cannot reach 192.0.2.53")


def test_fips_costs_openshift_a_warning() -> None:
    (warning,) = _warnings(INSTALL.replace("fips: false", "fips: true"), OPENSHIFT_SITE)
    assert "FIPS mode" in warning


def test_an_even_number_of_masters_is_refused() -> None:
    found = examined(INSTALL.replace("replicas: 3", "replicas: 4"), None)
    assert [(str(error.place), error.what) for error in found.errors] == [
        ("install-config.yaml:9:13", "there are 4 masters")
    ]


def test_an_even_number_of_listed_masters_is_refused() -> None:
    start, end = SITE.index("- name: master-c"), SITE.index("- name: worker-a")
    install = INSTALL.replace("  replicas: 3\n", "")
    found = examined(install, SITE[:start] + SITE[end:])
    assert [(str(error.place), error.what) for error in found.errors] == [("site.yaml:19:1", "there are 2 masters")]


def test_exactly_one_bootstrap() -> None:
    without = SITE.replace("- name: bootstrap\n  role: bootstrap\n  mac: 52:54:00:00:00:10\n  address: 10.1.0.10\n", "")
    (error,) = examined(INSTALL, without).errors
    assert (str(error.place), error.what) == ("site.yaml:19:1", "machines has no bootstrap")
    twice = SITE.replace("upstreamDNS", "- {name: again, role: bootstrap}\nupstreamDNS")
    (error,) = examined(INSTALL, twice).errors
    assert (str(error.place), error.what) == (
        "site.yaml:43:23",
        "this is a second bootstrap (the first is in line 20)",
    )


def test_a_network_too_small_for_the_machines() -> None:
    found = examined(INSTALL.replace("replicas: 2", "replicas: 300"), "network: {cidr: 10.1.0.0/24}\n")
    (error,) = found.errors
    assert str(error.place) == "site.yaml:1:17"
    assert "room for 254 addresses and the site needs 306" in error.what


def test_openshift_needs_a_pull_secret() -> None:
    install = INSTALL.replace(f"pullSecret: '{PULL_SECRET}'\n", "")
    (error,) = examined(install, OPENSHIFT_SITE).errors
    assert (str(error.place), error.what) == ("install-config.yaml:1:1", "pullSecret is missing")


def test_real_machines_are_listed() -> None:
    (error,) = examined(None, "provider: manual\n").errors
    assert (str(error.place), error.right) == (
        "site.yaml:1:11",
        "list them under machines, each with its MAC address",
    )


def test_all_problems_come_at_once_in_the_order_of_the_files() -> None:
    install = INSTALL.replace("name: demo", "name: De").replace("hostPrefix: 23", "hostPrefix: 3")
    site = SITE.replace("10.1.0.12", "10.1.0.11").replace("boot: 90s", "boot: soon").replace("nat: true", "nat: x")
    places = [str(error.place) for error in examined(install, site).errors]
    assert places == [
        "install-config.yaml:4:9",
        "install-config.yaml:21:17",
        "site.yaml:8:8",
        "site.yaml:30:12",
        "site.yaml:51:9",
    ]


def test_no_secret_is_in_any_message() -> None:
    secret = "hunter2-hunter2"
    for install in (
        INSTALL.replace(PULL_SECRET, f'{{"auths": {{"a": {{"password": "{secret}"}}}}}}'),
        INSTALL.replace(f"'{PULL_SECRET}'", f"{{auths: {secret}}}"),
        INSTALL.replace(PULL_SECRET, secret),
        INSTALL.replace(SSH_KEY, f"-----BEGIN OPENSSH PRIVATE KEY----- {secret}"),
        INSTALL.replace("publish: External", f"proxy: {{httpProxy: 'ftp://me:{secret}@proxy'}}"),
    ):
        found = examined(install, OPENSHIFT_SITE)
        assert found.errors
        assert not any(secret in str(problem) for problem in found.problems)
