"""Talking to the Kubernetes API, on hosts and in pods alike: the standard library, and YAML for kubeconfigs."""
