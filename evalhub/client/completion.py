"""Complete commands, options and choices in a shell: `eval "$(evh completion bash)"`."""

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
    commands = words_of(top)
    if shell == "fish":
        lines = [f"complete -c evh -n __fish_use_subcommand -a '{' '.join(commands)}'"]
        for command, words in commands.items():
            start = f"complete -c evh -n '__fish_seen_subcommand_from {command}'"
            lines += [f"{start} -l {word[2:]}" for word in words if word.startswith("--")]
            if plain := [word for word in words if not word.startswith("-")]:
                lines.append(f"{start} -a '{' '.join(plain)}'")

        sys.stdout.write("\n".join(lines) + "\n")
        return 0

    cases = "\n".join(
        f'            {command}) words="{" ".join(words)}" ;;'
        for command, words in commands.items()
    )
    script = _BASH.format(commands=" ".join(commands), cases=cases)
    sys.stdout.write((_ZSH if shell == "zsh" else "") + script)
    return 0


def words_of(top: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the words that may follow each command: its options, choices and actions."""
    return {name: _words(command) for name, command in _commands(top).items()}


def _words(command: argparse.ArgumentParser) -> list[str]:
    words: list[str] = []
    for option in command._actions:
        words += [text for text in option.option_strings if text.startswith("--")]
        if not isinstance(option, argparse._SubParsersAction):
            words += [str(choice) for choice in option.choices or ()]

    for name, action in _commands(command).items():
        words += [name, *_words(action)]

    return list(dict.fromkeys(words))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands within a parser by name."""
    for option in parser._actions:
        if isinstance(option, argparse._SubParsersAction):
            return dict(option.choices)
    return {}
