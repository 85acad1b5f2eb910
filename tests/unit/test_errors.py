from falsework.errors import FalseworkError, UsageError


def test_an_error_says_what_happened_why_and_what_to_do_next() -> None:
    error = FalseworkError("the lamp is dark", cause="no bulb", fix="put one in")
    assert str(error).splitlines() == ["the lamp is dark", "  cause: no bulb", "  next:  put one in"]


def test_wrong_input_has_an_exit_code_of_its_own() -> None:
    assert (FalseworkError("x").exit_code, UsageError("x").exit_code) == (1, 2)
