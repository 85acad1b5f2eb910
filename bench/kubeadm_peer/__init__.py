"""kubeadm on the lab's machines: what Falsework is measured against."""
