"""firewalld: a zone of its own for the helper, as a file.

A file is the whole truth: what a site no longer needs is closed when it is replaced, which a list of
firewall-cmd calls, each adding something, cannot do. And it can be read before it is used.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from falsework.helper.openings import Opening, openings
from falsework.helper.render.xml_text import to_xml
from falsework.site.model import Site

ZONE = "falsework"
PATH = f"zones/{ZONE}.xml"


def render(site: Site) -> str:
    zone = Element("zone")
    SubElement(zone, "short").text = ZONE
    SubElement(zone, "description").text = f"The helper of {site.domain}: what its machines and users need, no more."
    found = openings(site)
    for opening in found:
        if not opening.sources:
            _add_ports(zone, opening)
    for opening in found:
        for source in opening.sources:
            for ports in opening.ranges:
                rule = SubElement(zone, "rule", family="ipv4")
                SubElement(rule, "source", address=str(source))
                SubElement(rule, "port", port=ports, protocol=opening.protocol)
                SubElement(rule, "accept")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + to_xml(zone)


def _add_ports(zone: Element, opening: Opening) -> None:
    for ports in opening.ranges:
        SubElement(zone, "port", port=ports, protocol=opening.protocol)
