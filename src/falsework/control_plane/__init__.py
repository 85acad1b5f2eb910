"""The control plane's programs as static pods: what the temporary and the lasting ones have in common, as data."""
