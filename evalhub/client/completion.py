"""What completes commands, options and choices in a shell: `eval "$(evh completion bash)"`."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")
_BASH = """_evh() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _evh evh
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def write(shell: str, top: argparse.ArgumentParser) -> int:
    """Write the script of a shell to standard output."""
    found = words_of(top)
    if shell == "fish":
        lines = [f"complete -c evh -n __fish_use_subcommand -a '{' '.join(found)}'"]
        for command, words in found.items():
            options = [word.removeprefix("--") for word in words if word.startswith("--")]
            plain = [word for word in words if not word.startswith("-")]
            seen = f"complete -c evh -n '__fish_seen_subcommand_from {command}'"
            lines += [f"{seen} -l {option}" for option in options]
            lines += [f"{seen} -a '{' '.join(plain)}'"] if plain else []

        sys.stdout.write("\n".join(lines) + "\n")
        return 0

    cases = "\n".join(
        f'            {command}) words="{" ".join(words)}" ;;' for command, words in found.items()
    )
    sys.stdout.write(
        (_ZSH if shell == "zsh" else "") + _BASH.format(commands=" ".join(found), cases=cases)
    )
    return 0


def words_of(top: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the words that may follow each command: its options, its choices, the commands within it."""
    return {name: _words(made) for name, made in _commands(top).items()}


def _words(made: argparse.ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in made._actions:
        words += [option for option in action.option_strings if option.startswith("--")]
        if not isinstance(action, argparse._SubParsersAction):
            words += [str(choice) for choice in action.choices or ()]

    for name, inner in _commands(made).items():
        words += [name, *_words(inner)]

    return list(dict.fromkeys(words))


def _commands(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action for action in made._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}
