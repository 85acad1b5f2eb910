"""The ingress operator: routers run, have a certificate, and Ingresses become routes they serve."""
