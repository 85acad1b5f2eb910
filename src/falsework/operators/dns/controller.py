"""Keeps CoreDNS on all nodes as DNS `default` says, and says how far that is."""

from __future__ import annotations

from falsework.kube.client import Object
from falsework.kube.resources import CONFIG_MAPS, DAEMON_SETS, OPERATOR_DNSES, SERVICES
from falsework.manifests.operators.dns import OBJECT, OPERAND_NAMESPACE
from falsework.operators.dns import objects
from falsework.operators.dns.conditions import conditions_of
from falsework.operators.dns.corefile import corefile
from falsework.operators.dns.settings import CLUSTER_DOMAIN, settings_of
from falsework.operators.runtime.conditions import now, updated
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.kept_objects import KeptObjects
from falsework.operators.runtime.program import Program
from falsework.operators.site_facts import Site


def add_dns(program: Program) -> None:
    controller = DNSController(program)
    program.add(Controller("DNSController", controller.sync, controller.wakes, resync=300.0))


class DNSController:
    def __init__(self, program: Program) -> None:
        assert program.status is not None
        self._status = program.status
        self._image = program.images["coredns"]
        self._site = Site(program)
        self._operators = program.follow(OPERATOR_DNSES)
        ours = f"metadata.name={objects.NAME}"
        self._maps = program.follow(CONFIG_MAPS, OPERAND_NAMESPACE, fields=ours)
        self._services = program.follow(SERVICES, OPERAND_NAMESPACE, fields=ours)
        self._daemons = program.follow(DAEMON_SETS, OPERAND_NAMESPACE, fields=ours)
        self._kept = KeptObjects(program.client, program.events, program.name)
        followed = (self._operators, self._maps, self._services, self._daemons)
        self.wakes = [*self._site.wakes, *((informer, always) for informer in followed)]

    def sync(self, _key: str) -> None:
        dns = self._operators.get(OBJECT)
        if dns is None:
            # It is made once, and never again: without it there is nobody to ask what is wanted.
            return
        self._report()
        if (dns.get("spec") or {}).get("managementState") != "Unmanaged":
            self._keep(dns)

    def _keep(self, dns: Object) -> None:
        """The Service first: kubelets send pods to its address, and somebody else could take it."""
        facts, settings = self._site.facts(), settings_of(dns)
        placement = (dns.get("spec") or {}).get("nodePlacement") or {}
        self._kept.keep(SERVICES, objects.service(objects.cluster_address(facts.service_networks[0])), self._services)
        self._kept.keep(CONFIG_MAPS, objects.corefile_map(corefile(settings)), self._maps)
        self._kept.keep(DAEMON_SETS, objects.daemon_set(self._image, facts.internal_api, placement), self._daemons)

    def _report(self) -> None:
        service = self._services.get(objects.NAME, OPERAND_NAMESPACE) or {}
        address = str((service.get("spec") or {}).get("clusterIP") or "")
        conditions = conditions_of(self._daemons.get(objects.NAME, OPERAND_NAMESPACE), address)

        def change(status: Object) -> Object:
            said = updated(status.get("conditions") or [], conditions, now())
            return {**status, "clusterIP": address, "clusterDomain": CLUSTER_DOMAIN, "conditions": said}

        self._status.update(change)
