"""Where a person finds the keys to a cluster and its machines, below the site's folder."""

from __future__ import annotations

ADMIN_KUBECONFIG = "auth/kubeconfig"
ADMIN_PASSWORD = "auth/kubeadmin-password"  # noqa: S105 - its file
SSH_KEY = "auth/bootstrap-ssh-key"
