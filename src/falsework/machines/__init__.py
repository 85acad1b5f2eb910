"""Machines: anything that boots over the network, takes an Ignition config and runs systemd."""
