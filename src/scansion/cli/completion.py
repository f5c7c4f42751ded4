"""``scansion completion``: scripts for the shells' completion, made from the parser."""

from __future__ import annotations

import argparse
from typing import Any

from scansion.cli.parser import build_parser, verbs

__all__ = ["run", "script"]


def run(args: Any) -> int:
    """Print the script."""
    print(script(args.shell), end="")
    return 0


def script(shell: str) -> str:
    """The completion script of a shell."""
    parser = build_parser()
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](parser)


def _options(parser: argparse.ArgumentParser) -> list[tuple[argparse.Action, list[str]]]:
    """The options, each with its choices."""
    shown = [a for a in parser._actions if a.option_strings and a.help != argparse.SUPPRESS]
    return [(a, [str(choice) for choice in a.choices or ()]) for a in shown]


def _names(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action, _ in _options(parser) for name in action.option_strings]


def _positional(parser: argparse.ArgumentParser) -> list[str]:
    """Choices of the positional arguments."""
    return [str(choice) for a in parser._actions if not a.option_strings for choice in a.choices or ()]


def _words(words: list[str]) -> str:
    """Bash: complete by one of these."""
    return f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$word\"))"


def _bash(parser: argparse.ArgumentParser) -> str:
    cases = ""
    for name, verb in verbs(parser).items():
        values = [
            f"        {'|'.join(a.option_strings)}) {_words(choices)}; return ;;\n"
            for a, choices in _options(verb)
            if choices
        ]
        words = _positional(verb)
        files = _words(words) if words else 'COMPREPLY=($(compgen -f -- "$word"))'
        cases += f"    {name})\n" + (f'      case "$before" in\n{"".join(values)}      esac\n' if values else "")
        cases += f"      if [[ $word == -* ]]; then {_words(_names(verb))}; else {files}; fi ;;\n"
    return (
        "_scansion() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        f"  if [[ $COMP_CWORD == 1 ]]; then {_words([*verbs(parser), *_names(parser)])}; return; fi\n"
        f'  case "${{COMP_WORDS[1]}}" in\n{cases}  esac\n}}\n'
        "complete -o filenames -F _scansion scansion\n"
    )


def _quoted(text: str) -> str:
    """Text inside single quotes, for zsh's _arguments: brackets and colons mean something there."""
    for c in "\\[]:":
        text = text.replace(c, "\\" + c)
    return text.replace("'", "'\\''")


def _zsh(parser: argparse.ArgumentParser) -> str:
    cases = ""
    for name, verb in verbs(parser).items():
        specs = []
        for action, choices in _options(verb):
            what = f"({' '.join(choices)})" if choices else "_files"
            value = "" if action.nargs == 0 else f":{_quoted(str(action.metavar or action.dest))}:{what}"
            specs += [f"'{option}[{_quoted(action.help or '')}]{value}'" for option in action.option_strings]
        words = _positional(verb)
        specs.append(f"'*::argument:({' '.join(words)})'" if words else "'*:file:_files'")
        cases += f"    {name}) _arguments {' '.join(specs)} ;;\n"
    named = " ".join(f"'{name}:{_quoted(verb.description or '')}'" for name, verb in verbs(parser).items())
    return (
        "#compdef scansion\n_scansion() {\n"
        "  if (( CURRENT == 2 )); then\n"
        f"    local -a words=({named})\n    _describe 'verb' words\n    return\n  fi\n"
        '  local verb="${words[2]}"\n  shift words\n  (( CURRENT-- ))\n'
        f'  case "$verb" in\n{cases}  esac\n}}\n'
        "compdef _scansion scansion\n"
    )


def _fish(parser: argparse.ArgumentParser) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["-n __fish_use_subcommand -f"]
    for name, verb in verbs(parser).items():
        lines.append(f"-n __fish_use_subcommand -a {name} -d {quoted(verb.description or '')}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for action, choices in _options(verb):
            names = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
            value = f" -x -a {quoted(' '.join(choices))}" if choices else "" if action.nargs == 0 else " -r"
            lines.append(f"{seen} {names}{value} -d {quoted(action.help or '')}")
        if words := _positional(verb):
            lines.append(f"{seen} -f -a {quoted(' '.join(words))}")
    return "".join(f"complete -c scansion {line}\n" for line in lines)
