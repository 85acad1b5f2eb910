"""What runs in the cluster: one package per operator, and the runtime they share."""
