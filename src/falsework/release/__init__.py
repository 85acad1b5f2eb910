"""The release: what runs on the machines, pinned; where it comes from; how it is packed.

`payload` says what the release is. `build` brings it into the `cache` from a mirror or by building it, and
gives the other rooms a `Release`: binaries, images, the OS image and the seeded image store.
"""
