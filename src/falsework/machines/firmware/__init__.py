"""The network-boot client of a namespace machine: what firmware, boot loader and initramfs do on a real one."""
