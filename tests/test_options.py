"""Options of the commands: what is none is refused, also where it is a part of one."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from evalhub.local.options import parse
from evalhub.management.command import Command

OURS = sorted(name for name, app in get_commands().items() if app == "evalhub")


@pytest.mark.parametrize("name", OURS)
def test_a_command_takes_its_options_by_their_whole_names(name: str) -> None:
    command = load_command_class("evalhub", name)
    assert isinstance(command, Command)
    parser = command.create_parser("evalhub", name)
    long = [
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    ]
    wrong = [option[:-1] for option in long if option[:-1] not in (*long, "-")]
    assert len(wrong) > 5
    for option in (*wrong, "--nonsense"):
        _, unread = parser.parse_known_args(
            [option, *("x" for action in parser._actions if not action.option_strings)]
        )
        assert option in unread, option
        with pytest.raises(CommandError):
            parser.parse_args([option])


@pytest.mark.parametrize("option", ["--nonsense", "--form", "--nosumm", "--verb"])
def test_eval_does_as_well(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse([option, "qrels", "run"])
    assert stop.value.code == 2
    assert f"unrecognized arguments: {option}" in capsys.readouterr().err
