import argparse

import pytest

from falsework.cli import exec as exec_command
from falsework.cli import kubectl, main
from falsework.cli.passing_on import split


@pytest.mark.parametrize(
    ("line", "own", "ours", "theirs"),
    [
        ("kubectl get pods -A -o wide --dir", 0, "kubectl", "get pods -A -o wide --dir"),
        ("kubectl --dir D get nodes", 0, "kubectl --dir D", "get nodes"),
        ("kubectl --dir=D -n x get pods", 0, "kubectl --dir=D", "-n x get pods"),
        ("kubectl -n x get pods", 0, "kubectl", "-n x get pods"),
        ("kubectl --help", 0, "kubectl", "--help"),
        ("kubectl exec pod -- ls -l", 0, "kubectl", "exec pod -- ls -l"),
        ("kubectl", 0, "kubectl", ""),
        ("exec master-0 -- ls -l --dir /", 1, "exec master-0", "ls -l --dir /"),
        ("exec --dir D master-0 ls -- -x", 1, "exec --dir D master-0", "ls -- -x"),
        ("exec master-0 --dir D -- ls", 1, "exec master-0 --dir D", "ls"),
        ("exec --help", 1, "exec --help", ""),
        ("exec -- ls", 1, "exec", "ls"),
        ("ssh master-0", 1, "ssh master-0", ""),
        ("ssh master-0 -- --version --", 1, "ssh master-0", "--version --"),
    ],
)
def test_every_word_goes_where_it_belongs(line: str, own: int, ours: str, theirs: str) -> None:
    assert split(line.split(), own) == (ours.split(), theirs.split())


def test_the_command_gets_them_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []

    def run(options: argparse.Namespace) -> int:
        seen.append(options)
        return 7

    for module in (kubectl, exec_command):
        monkeypatch.setattr(module, "run", run)
    assert main(["kubectl", "--dir", "D", "-n", "x", "get", "pods", "--help", ""]) == 7
    assert str(seen[0].dir) == "D"
    assert seen[0].passed_on == ["-n", "x", "get", "pods", "--help", ""]
    assert main(["exec", "master-0", "--", "ls", "-l"]) == 7
    assert (seen[1].machine, seen[1].passed_on) == ("master-0", ["ls", "-l"])


def test_our_own_help_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--help"])
    assert "MACHINE" in capsys.readouterr().out
