"""The fifth stage: the helper machine, with every server that machines boot from and a cluster stands behind."""

from __future__ import annotations

from functools import partial

from falsework.assets.serialize import to_json
from falsework.checks.answers import Asker
from falsework.checks.helper import checks_of
from falsework.files import write_file
from falsework.helper.machine import HelperFiles, helper_config, read_assets
from falsework.helper.registry_store import registry_store
from falsework.helper.services import REGISTRY_STORE, has_registry
from falsework.helper.update import bring_up_to_date, pending_changes
from falsework.lab.folder import NETWORK
from falsework.machine_code import machine_code
from falsework.machines.provider import Power, Spec
from falsework.site.problems import counted
from falsework.stages import machines
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.model import Stage

_PATIENCE = 60.0
"""Its services start within a second or two."""


def files(context: Context) -> HelperFiles:
    site = context.standing_site
    return helper_config(site, read_assets(site, context.lab.site_folder), machine_code("boot-server"))


def _is_running(context: Context) -> bool:
    return machines.provider(context).state(context.site.helper.name).power is Power.RUNNING


def _done(context: Context) -> bool:
    provider, name = machines.provider(context), context.site.helper.name
    if not _is_running(context) or pending_changes(files(context), provider, name):
        return False
    return all(condition.look().holds for condition in _conditions(context))


def _plan(context: Context) -> list[str]:
    helper = context.site.helper
    if not _is_running(context):
        return [f"machine {helper.name} with {service.unit.name}" for service in files(context).services]
    changes = pending_changes(files(context), machines.provider(context), helper.name)
    return [f"{helper.name}: write {file.path}" for file in changes.write] + [
        f"{helper.name}: {' '.join(words)}" for words in changes.commands
    ]


def _run(context: Context) -> None:
    provider, site = machines.provider(context), context.site
    helper, wanted = site.helper, files(context)
    if not _is_running(context):
        release = context.release
        config = context.lab.root / "helper.ign"
        write_file(config, to_json(wanted.ignition()), 0o600)
        binds = {}
        if has_registry(site):
            binds[REGISTRY_STORE] = str(registry_store(context.cache, release.images.values()))
        spec = Spec(
            name=helper.name,
            hostname=site.fqdn(helper),
            mac=helper.mac,
            cpus=helper.cpus,
            memory_mib=helper.memory_mib,
            folders=tuple(share.path for share in site.nfs_shares),
            binds=binds,
            ignition=config,
            address=f"{helper.address}/{site.lab.cidr.prefixlen}",
        )
        provider.create(spec, release.os_root)
        provider.start(helper.name)
        context.wait_for([_up(context)])
    changes = bring_up_to_date(wanted, provider, helper.name)
    if changes.write:
        context.say(f"{helper.name}: {counted(len(changes.write), 'file')} brought up to date")


def _up(context: Context) -> Condition:
    return machines.booted(context, context.site.helper)


def _conditions(context: Context) -> list[Condition]:
    provider, helper = machines.provider(context), context.site.helper
    asker = Asker(context.lab.netns_path(NETWORK))
    checks = checks_of(context.site, context.lab.site_folder, asker, partial(provider.execute, helper.name))
    return [_up(context), *(machines.condition(helper, check, _PATIENCE) for check in checks)]


STAGE = Stage(
    name="helper",
    title="Start the helper",
    why="Machines that have nothing must be able to ask somebody: who am I, what do I boot, where is everyone else?",
    needs=("network", "assets"),
    done=_done,
    plan=_plan,
    run=_run,
    conditions=_conditions,
)
