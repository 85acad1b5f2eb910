"""The kube-scheduler on every master; one of them works at a time."""
