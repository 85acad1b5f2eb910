"""The kube-apiserver on every master."""
