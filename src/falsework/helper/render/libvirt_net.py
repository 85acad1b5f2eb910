"""libvirt: the lab's network for `virsh net-define`.

Without DHCP and DNS of libvirt's own: two DHCP servers on one network are none that can be relied on.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from falsework.helper.render.xml_text import to_xml
from falsework.site.model import Site

PATH = "network.xml"


def render(site: Site) -> str:
    network = Element("network")
    SubElement(network, "name").text = site.lab.name
    if site.lab.nat:
        forward = SubElement(network, "forward", mode="nat")
        SubElement(SubElement(forward, "nat"), "port", start="1024", end="65535")
    SubElement(network, "bridge", name=site.lab.name, stp="on", delay="0")
    SubElement(network, "dns", enable="no")
    SubElement(network, "ip", address=str(site.lab.gateway), netmask=str(site.lab.cidr.netmask))
    return to_xml(network)
