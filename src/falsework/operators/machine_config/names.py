"""Where the parts of machine configuration meet: objects that one writes and another reads."""

from __future__ import annotations

NAMESPACE = "openshift-machine-config-operator"

INVENTORY_NAMESPACE = "openshift-config"
INVENTORY = "machine-inventory"
"""ConfigMap with the machines of the site, written by bootkube."""
INVENTORY_KEY = "inventory.json"
SITE_KEY = "site.json"
"""The same machines, and the load balancers, as the Machine Config Server needs them."""

JOIN_SECRET = "machine-join"  # noqa: S105 - its name
SERVER_CERTIFICATE = "machine-config-server-tls"
SERVED = "machine-config-served"
"""ConfigMap: node name → JSON with the time its machine last had its whole config, and which one."""
