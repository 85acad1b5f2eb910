"""The way in: a folder with install-config.yaml and site.yaml, both optional, becomes a Site."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from falsework.site import install_config, site_config
from falsework.site.host_routes import HostRoutes, read_host_routes
from falsework.site.install_config import InstallConfig, read_install_config
from falsework.site.model import Site
from falsework.site.problems import Place, Problem, Problems, Severity, SiteError
from falsework.site.site_config import SiteConfig, read_site_config
from falsework.site.validate import complete
from falsework.site.yaml_source import Mapping, Node, parse_yaml, read_yaml

_IN_SITE_CONFIG = dict.fromkeys(site_config.KEYS, site_config.FILE)
_IN_INSTALL_CONFIG = dict.fromkeys(
    (
        "baseDomain",
        "metadata",
        "networking",
        "controlPlane",
        "compute",
        "platform",
        "pullSecret",
        "sshKey",
        "fips",
        "publish",
        "proxy",
        "capabilities",
        "additionalTrustBundle",
    ),
    install_config.FILE,
)


@dataclass(frozen=True)
class Examined:
    """A site with all that is to be said about it. Without a site there is at least one error."""

    site: Site | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)


def load_site(folder: Path, *, routes: HostRoutes = read_host_routes) -> Site:
    """The folder's site; SiteError with all problems when its files cannot be used. Without files, the default one."""
    examined = examine(folder, routes=routes)
    if examined.site is None:
        raise SiteError(examined.problems)
    return examined.site


def default_site() -> Site:
    """The site that is there without any file."""
    site = examine_text(routes=tuple).site
    assert site is not None, "the defaults keep all rules"
    return site


def examine(folder: Path, *, routes: HostRoutes = read_host_routes) -> Examined:
    problems = Problems()
    if not _is_folder(folder):
        problems.error(
            Place(str(folder)),
            f"{folder} is not a folder that can be read",
            "name the folder that holds (or will hold) the files",
        )
        return Examined(None, problems.in_order())

    def node(name: str) -> Node | None:
        path = folder / name
        return read_yaml(path, problems) if os.path.lexists(path) else Mapping(Place(name))

    examined = _examine(node(install_config.FILE), node(site_config.FILE), routes, problems)
    return Examined(examined.site, tuple(_in_folder(problem, folder) for problem in examined.problems))


def _is_folder(path: Path) -> bool:
    """And one that may be looked into: in any other, every file would seem not to be there."""
    return path.is_dir() and os.access(path, os.R_OK | os.X_OK)


def _in_folder(problem: Problem, folder: Path) -> Problem:
    """The place as an editor started from here finds it."""
    return replace(problem, place=replace(problem.place, file=str(folder / problem.file)))


def examine_text(
    install: bytes | None = None, site: bytes | None = None, *, routes: HostRoutes = read_host_routes
) -> Examined:
    """The same for contents at hand; None stands for a file that is not there."""
    problems = Problems()

    def node(content: bytes | None, name: str) -> Node | None:
        return Mapping(Place(name)) if content is None else parse_yaml(content, name, problems)

    return _examine(node(install, install_config.FILE), node(site, site_config.FILE), routes, problems)


def _examine(install_node: Node | None, site_node: Node | None, routes: HostRoutes, problems: Problems) -> Examined:
    """A file that is not there has no place in a file; one that cannot be read leaves nothing to compare with."""
    install, config = InstallConfig(), SiteConfig()
    if install_node is not None and install_node.place.line:
        install = read_install_config(install_node, problems, _IN_SITE_CONFIG)
    if site_node is not None:
        config = read_site_config(site_node, problems, _IN_INSTALL_CONFIG)
    site = None
    if isinstance(install_node, Mapping) and isinstance(site_node, Mapping):
        site = complete(install, config, routes, problems)
    return Examined(site, problems.in_order())
