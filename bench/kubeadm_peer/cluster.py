"""kubeadm's cluster, from power on to everything Ready: `init` on the first master, then all others join at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from outcome import POWER_ON
from ready import AllReady

from falsework.assets.keys_in_folder import SSH_KEY
from falsework.assets.serialize import to_json
from falsework.files import write_file
from falsework.helper.boot import config_path
from falsework.helper.bootserver import CONFIG_FOLDER
from falsework.kube.client import Client
from falsework.kube.resources import NODES, PODS
from falsework.machines import share
from falsework.machines.lab_api import lab_client
from falsework.machines.provider import Spec
from falsework.machines.view import View
from falsework.process import run
from falsework.release import imagestore
from falsework.release.payload import load_payload
from falsework.site.model import Machine, Role
from falsework.stages import machines
from falsework.stages.context import Context
from kubeadm_peer import configs
from kubeadm_peer.configs import KUBEADM, Secrets

CONTROL_PLANES_JOINED = "control planes joined"
NODES_READY = "nodes Ready"
PODS_READY = "pods Ready"
ENDS = (CONTROL_PLANES_JOINED, NODES_READY, PODS_READY)
"""What may be taken for the end of it."""

_CONFIG = "/etc/kubernetes/kubeadm.yaml"
_ADMIN = "/etc/kubernetes/admin.conf"
_VOTES = "[kubelet-check] Waiting"
"""Begins the line kubeadm prints on a master that joins when its member of etcd is no learner any more."""


class KubeadmCluster:
    """`context` is that of a lab whose helper is up. When what was over is in `moments`; machine by machine, in
    `details`."""

    def __init__(self, context: Context, store: Path, *, with_workers: bool) -> None:
        """`store` has the images."""
        self.moments: dict[str, float] = {}
        self.details: dict[str, float] = {}
        self._context = context
        self._site = context.site
        self._machines = (*context.site.masters, *(context.site.workers if with_workers else ()))
        self._provider = machines.provider(context)
        self._payload = load_payload()
        self._store = store
        self._kubeadm = context.release.install("kubeadm", context.lab.programs)
        self._secrets = Secrets(f"{secrets.token_hex(3)}.{secrets.token_hex(8)}", secrets.token_hex(32))

    def bring_up(self) -> None:
        first, *others = self._machines
        self._prepare()
        self._switch_on()
        self._await_boot(first)
        self._reached("first master booted")
        config = configs.init_config(self._site, self._payload, self._secrets)
        self._run_kubeadm(first, config, "init", "--upload-certs")
        self._reached("kubeadm init")
        client = self._client()
        with (
            AllReady(client, NODES, len(self._machines)) as nodes,
            AllReady(client, PODS, self._pods_wanted()) as pods,
            ThreadPoolExecutor(len(others)) as pool,
        ):
            joins = [pool.submit(self._join, machine) for machine in others]
            self._apply_network(first)
            for join in joins:
                join.result()
            self.moments |= {NODES_READY: nodes.wait(), PODS_READY: pods.wait()}

    def _prepare(self) -> None:
        """What the helper serves to the machines: instead of Falsework's configs, those of kubeadm's."""
        site, folder = self._site, self._context.lab.site_folder
        authority = (folder / "tls/root-ca.crt").read_bytes()
        keys = ((folder / f"{SSH_KEY}.pub").read_text().strip(),)
        for machine in self._machines:
            content = to_json(configs.machine_config(site, machine, authority, keys))
            path = f"{CONFIG_FOLDER}/{config_path(site, machine)}"
            self._provider.write_file(site.helper.name, path, content, 0o640)

    def _switch_on(self) -> None:
        machines.expect(self._context, self._machines)
        share.lab_groups(self._context.lab, self._context.journal)
        self._reached(POWER_ON)
        with ThreadPoolExecutor(machines.AT_ONCE) as pool:
            list(pool.map(self._start, self._machines))

    def _start(self, machine: Machine) -> None:
        site, program = self._site, {KUBEADM: str(self._kubeadm)}
        fqdn = site.fqdn(machine)
        spec = Spec(machine.name, fqdn, machine.mac, machine.cpus, machine.memory_mib, machines.FOLDERS, program)
        self._provider.create(spec, self._context.release.os_root, partial(imagestore.seed, self._store))
        self._provider.start(machine.name)

    def _await_boot(self, machine: Machine) -> None:
        self._context.wait_for([machines.booted(self._context, machine)])

    def _join(self, machine: Machine) -> None:
        self._await_boot(machine)
        is_master = machine.role is Role.MASTER

        def heard(line: str) -> None:
            if is_master and line.startswith(_VOTES):
                self._reached("three voters in etcd")
                self.details[f"{machine.name} votes in etcd"] = time.time()

        self._run_kubeadm(machine, configs.join_config(self._site, machine, self._secrets), "join", heard=heard)
        self._reached(CONTROL_PLANES_JOINED if is_master else "workers joined")
        self.details[f"{machine.name} joined"] = time.time()

    def _run_kubeadm(
        self, machine: Machine, config: bytes, *words: str, heard: Callable[[str], None] | None = None
    ) -> None:
        self._provider.write_file(machine.name, _CONFIG, config, 0o600)
        command = self._provider.command(machine.name, (KUBEADM, *words, f"--config={_CONFIG}"))
        run(command, each_line=heard)

    def _apply_network(self, machine: Machine) -> None:
        place = "/etc/kubernetes/flannel.json"
        self._provider.write_file(machine.name, place, configs.flannel(self._site, self._payload))
        self._provider.execute(machine.name, ("kubectl", f"--kubeconfig={_ADMIN}", "apply", "-f", place))

    def _client(self) -> Client:
        """Through the load balancer, as the administrator; the lab's own commands have the key too then."""
        view = View(self._site, self._context.lab)
        write_file(view.kubeconfig, self._provider.read_file(self._machines[0].name, _ADMIN), 0o600)
        return lab_client(view)

    def _pods_wanted(self) -> int:
        """Four in every control plane, kube-proxy and flannel everywhere, and two of CoreDNS."""
        return 4 * len(self._site.masters) + 2 * len(self._machines) + 2

    def _reached(self, name: str) -> None:
        """Of what happens on several machines, the last counts."""
        self.moments[name] = time.time()
