"""The image registry operator: images of the cluster's own, pushed by people and pulled by nodes."""
