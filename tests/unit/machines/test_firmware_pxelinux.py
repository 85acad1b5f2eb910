from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.errors import FalseworkError
from falsework.helper.render import pxe
from falsework.machines.firmware.pxelinux import BootEntry, boot_entry, config_files
from falsework.site.load import default_site


def test_the_order_of_names() -> None:
    assert list(config_files("pxelinux.0", "52:54:00:6D:CD:8A", "192.168.126.101")) == [
        "pxelinux.cfg/01-52-54-00-6d-cd-8a",
        "pxelinux.cfg/C0A87E65",
        "pxelinux.cfg/C0A87E6",
        "pxelinux.cfg/C0A87E",
        "pxelinux.cfg/C0A87",
        "pxelinux.cfg/C0A8",
        "pxelinux.cfg/C0A",
        "pxelinux.cfg/C0",
        "pxelinux.cfg/C",
        "pxelinux.cfg/default",
    ]


@pytest.mark.parametrize(
    ("boot_file", "folder"), [("/boot/pxelinux.0", "boot/pxelinux.cfg"), ("/pxelinux.0", "pxelinux.cfg")]
)
def test_configs_are_beside_the_boot_file(boot_file: str, folder: str) -> None:
    assert next(config_files(boot_file, "52:54:00:6d:cd:8a", "10.0.0.1")) == f"{folder}/01-52-54-00-6d-cd-8a"


def test_our_own_configs() -> None:
    site = default_site()
    files = pxe.render(site)
    for machine in site.machines:
        name = next(config_files("pxelinux.0", machine.mac, str(machine.address)))
        entry = boot_entry(name, files[name])
        assert (entry.kernel, entry.initramfs) == ("falsework/kernel", "falsework/initramfs.img")
        assert "ignition.firstboot" in entry.arguments
        assert entry.command_line.startswith("BOOT_IMAGE=falsework/kernel initrd=falsework/initramfs.img ip=dhcp ")


def test_the_forms_people_write() -> None:
    text = """
    # a comment
    default Second
    append common
    timeout 30
    label first
        kernel one
    label Second
    \tLinux\ttwo
        append initrd=two.img a=b  c
    """
    assert boot_entry("default", text) == BootEntry("two", "two.img", ("a=b", "c"))


def test_without_a_default_the_first_label_is_booted_with_the_arguments_for_all() -> None:
    text = "APPEND common\nLABEL a\nKERNEL one\nLABEL b\nKERNEL two\nAPPEND -\n"
    assert boot_entry("default", text) == BootEntry("one", "", ("common",))
    assert boot_entry("default", f"DEFAULT b\n{text}") == BootEntry("two", "", ())


@pytest.mark.parametrize("text", ["", "DEFAULT a\nLABEL b\nKERNEL x\n", "LABEL a\nINITRD x\n", "LABEL a\nKERNEL\n"])
def test_a_config_that_boots_nothing(text: str) -> None:
    with pytest.raises(FalseworkError, match="does not say what to boot"):
        boot_entry("default", text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["DEFAULT", "LABEL", "KERNEL", "APPEND", "INITRD", "a", "\n", " "])).map(" ".join))
def test_any_text_is_an_entry_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(FalseworkError):
        assert boot_entry("default", text).kernel
