"""Who may be a node: certificate requests of kubelets, read, judged and approved. The standard library alone."""
