"""What HAProxy is told, and what it is told at run time."""

from __future__ import annotations

from pathlib import Path

from falsework.operators.router.config import Place, serving, waiting
from falsework.operators.router.endpoints import Endpoint
from falsework.operators.router.routes import Route, Target
from falsework.operators.router.slots import changes, fitted, fresh

PLACE = Place(Path("/shared"))
ONE, TWO, THREE = (Endpoint(f"10.0.0.{number}", 80) for number in (1, 2, 3))


def route(name: str, termination: str = "", insecure: str = "None", path: str = "", **annotations: str) -> Route:
    noted = {f"haproxy.router.openshift.io/{key}": value for key, value in annotations.items()}
    targets = (Target("shop", 100),)
    return Route("shop", name, "uid", "shop.example.com", path, None, targets, termination, insecure, annotations=noted)


def maps(*routes: Route) -> str:
    files = serving(PLACE, routes, {}, b"pem").files
    return "".join(content.decode() for name, content in sorted(files.items()) if name.endswith(".map"))


def test_before_anything_is_known_it_says_that_it_is_not_ready() -> None:
    text = waiting(PLACE).text({})
    assert "return status 503" in text
    assert ":443" not in text


def test_without_tls_a_client_gets_what_the_route_says() -> None:
    assert "shop.example.com/ be_edge_http:shop:shop\n" in maps(route("shop", "edge"))
    assert "redirect" in maps(route("shop", "passthrough", "Redirect"))
    # With and without TLS the same: then it is the same file.
    allowed = serving(PLACE, [route("shop", "edge", "Allow")], {}, b"pem")
    (name,) = (name for name, content in allowed.files.items() if b"be_edge_http" in content)
    assert allowed.head.count(name) == 2
    assert maps(route("shop", path="/cart")) == "shop.example.com/cart/ be_http:shop:shop\n"


def test_annotations_that_mean_nothing_change_nothing() -> None:
    def settings(**annotations: str) -> tuple[str, ...]:
        (backend,) = serving(PLACE, [route("shop", **annotations)], {}, b"pem").backends
        return backend.settings

    assert "balance leastconn" in settings(balance="leastconn")
    assert "timeout server 3m" in settings(timeout="3m")
    assert not any(setting.startswith("cookie") for setting in settings(disable_cookies="true"))
    assert settings(balance="leastconn\n  bogus", timeout="3m\nbogus") == settings()


def test_who_stays_stays_where_it_is() -> None:
    slots = fresh([ONE, TWO])
    assert len(slots) > 4
    moved = fitted(slots, [TWO, THREE])
    assert moved is not None
    assert moved[1] == TWO
    # A free place before the one that is being left.
    assert moved[:3] == (None, TWO, THREE)
    assert fitted((ONE,), [ONE, TWO]) is None
    assert fitted((ONE, TWO), [TWO, THREE]) == (THREE, TWO)


def test_pods_come_before_others_go() -> None:
    commands = list(changes("be", (ONE, TWO, None), (None, Endpoint(TWO.address, 80, 7), THREE)))
    assert commands == [
        "set server be/pod-2 weight 7",
        "set server be/pod-3 addr 10.0.0.3 port 80",
        "set server be/pod-3 weight 256",
        "set server be/pod-3 state ready",
        "set server be/pod-1 state maint",
    ]
