"""Where a person finds the keys to a cluster and its machines, below the site's folder."""

from __future__ import annotations

ADMIN_KUBECONFIG = "auth/kubeconfig"
SSH_KEY = "auth/bootstrap-ssh-key"
