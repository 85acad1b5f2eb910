"""Who may be a node, once the cluster decides about it itself."""
