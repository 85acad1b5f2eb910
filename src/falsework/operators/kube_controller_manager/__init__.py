"""The kube-controller-manager on every master; one of them works at a time."""
