import pytest

from falsework.errors import FalseworkError
from falsework.process import CommandError, Finished
from falsework.retry import passing_fault, persist


def failure(output: str) -> CommandError:
    return CommandError("fetch ended with exit code 1", Finished(("fetch",), 1, output))


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ("reading https://proxy/x: 429 Too Many Requests", "answered 'too many requests'"),
        ("server misbehaving: 503 Service Unavailable", "answered with a server error"),
        ("dial tcp: lookup proxy: no such host", "could not be found by name"),
        ("Temporary failure in name resolution", "could not be found by name"),
        ("dial tcp 127.0.0.1:9: connect: connection refused", "refused to talk"),
        ("net/http: TLS handshake timeout", "did not answer"),
        ("read: connection reset by peer", "did not answer"),
        ("verifying module: checksum mismatch", None),
        ("cannot find package", None),
    ],
)
def test_only_faults_that_may_pass_are_taken_for_such(output: str, fault: str | None) -> None:
    assert passing_fault(output) == fault


def test_a_busy_registry_is_asked_again_until_it_answers() -> None:
    said: list[str] = []
    answers = [failure("429"), failure("429"), None]

    def action() -> str:
        if error := answers.pop(0):
            raise error
        return "answer"

    assert persist("the index", action, said.append, fix="", pauses=(0.0, 0.0, 0.0)) == "answer"
    assert said == [
        "the index answered 'too many requests'; trying again in 0 s (try 2 of 4)",
        "the index answered 'too many requests'; trying again in 0 s (try 3 of 4)",
    ]


def test_a_registry_that_never_answers_ends_in_a_sentence_with_a_way_out() -> None:
    def action() -> None:
        raise failure("i/o timeout")

    with pytest.raises(FalseworkError) as caught:
        persist("the index", action, lambda _: None, fix="check the network", pauses=(0.0,))
    assert caught.value.what == "the index did not answer, 2 times in a row"
    assert caught.value.fix == "check the network"


def test_what_will_not_pass_is_not_tried_again() -> None:
    tries = []

    def action() -> None:
        tries.append(1)
        raise failure("checksum mismatch")

    with pytest.raises(CommandError):
        persist("the index", action, lambda _: None, fix="", pauses=(0.0,))
    assert len(tries) == 1
