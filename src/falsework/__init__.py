"""Falsework: from bare machines to a self-hosted, highly available, OpenShift-shaped Kubernetes cluster."""

__version__ = "0.1.0"
