"""machineconfiguration.openshift.io/v1: what is on the machines."""

from __future__ import annotations

from falsework.manifests.schema import (
    AGE,
    Column,
    Definition,
    Schema,
    anything,
    condition,
    conditions,
    listing,
    number_or_text,
    record,
    selector,
    text,
    truth,
    whole,
)

GROUP = "machineconfiguration.openshift.io"


def definitions() -> list[Definition]:
    return [_machine_config(), _machine_config_pool(), _controller_config()]


def _machine_config() -> Definition:
    ignition = record({"version": text(pattern=r"^[23]\.[0-9]+\.[0-9]+(-experimental)?$")}, more=True)
    return Definition(
        "0000_80_machine-config_01_machineconfigs.crd.yaml",
        GROUP,
        "MachineConfig",
        "machineconfigs",
        "A part of what is on the machines of a pool: an Ignition config, kernel arguments.",
        record(
            {
                "config": record({"ignition": ignition}, more=True, nullable=True),
                "kernelArguments": listing(text(), nullable=True),
                "extensions": listing(text(), nullable=True),
                "fips": truth(),
                "kernelType": text(),
                "osImageURL": text(),
                "baseOSExtensionsContainerImage": text(),
            }
        ),
        short=("mc",),
        columns=(
            Column(
                "GeneratedByController",
                r".metadata.annotations.machineconfiguration\.openshift\.io/generated-by-controller-version",
                description="Version of the controller that made it; empty if none did.",
            ),
            Column(
                "IgnitionVersion",
                ".spec.config.ignition.version",
                description="Spec version of the Ignition config in it.",
            ),
            AGE,
        ),
    )


def _pool_configuration() -> Schema:
    source = {
        name: text() for name in ("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "fieldPath")
    }
    return record({"name": text(), "source": listing(record(source))}, more=True)


def _machine_config_pool() -> Definition:
    counts = ("machineCount", "readyMachineCount", "updatedMachineCount", "degradedMachineCount")
    return Definition(
        "0000_80_machine-config_01_machineconfigpools.crd.yaml",
        GROUP,
        "MachineConfigPool",
        "machineconfigpools",
        "Machines that are configured alike.",
        record(
            {
                "configuration": _pool_configuration(),
                "machineConfigSelector": selector(),
                "nodeSelector": selector(),
                "maxUnavailable": number_or_text(),
                "paused": truth(),
            },
            more=True,
        ),
        record(
            {name: whole(0) for name in (*counts, "unavailableMachineCount")}
            | {
                "configuration": _pool_configuration(),
                "conditions": conditions(),
                "observedGeneration": whole(wide=True),
                "certExpirys": listing(anything()),
            },
            more=True,
        ),
        short=("mcp",),
        columns=(
            Column("Config", ".status.configuration.name"),
            Column("Updated", condition("Updated"), description="Every machine has the configuration."),
            Column("Updating", condition("Updating"), description="Machines are getting the configuration."),
            Column("Degraded", condition("Degraded"), description="Progress is blocked on a machine."),
            Column("MachineCount", ".status.machineCount", "number", "Machines in the pool."),
            Column("ReadyMachineCount", ".status.readyMachineCount", "number", "Machines that are updated and ready."),
            Column("UpdatedMachineCount", ".status.updatedMachineCount", "number", "Machines with the configuration."),
            Column("DegradedMachineCount", ".status.degradedMachineCount", "number", "Machines that cannot get it."),
            AGE,
        ),
    )


def _controller_config() -> Definition:
    return Definition(
        "0000_80_machine-config_01_controllerconfigs.crd.yaml",
        GROUP,
        "ControllerConfig",
        "controllerconfigs",
        "What machine configs are made from.",
        record(more=True),
        record({"conditions": conditions(), "observedGeneration": whole(wide=True)}, more=True),
    )
