"""Kubernetes' own conformance tests, built from the release's sources and run against a lab's cluster."""
