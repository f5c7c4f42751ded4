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


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [a for a in parser._actions if a.option_strings and a.help != argparse.SUPPRESS]


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _positional(parser: argparse.ArgumentParser) -> list[str]:
    """Choices of the positional arguments."""
    return [c for a in parser._actions if not a.option_strings for c in _choices(a)]


def _words(words: list[str]) -> str:
    """Bash: complete by one of these."""
    return f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$word\"))"


def _bash(parser: argparse.ArgumentParser) -> str:
    cases = []
    for name, verb in verbs(parser).items():
        options = [o for a in _options(verb) for o in a.option_strings]
        values = "".join(
            f"        {'|'.join(a.option_strings)}) {_words(_choices(a))}; return ;;\n"
            for a in _options(verb)
            if _choices(a)
        )
        words = _positional(verb)
        files = _words(words) if words else 'COMPREPLY=($(compgen -f -- "$word"))'
        cases.append(
            f"    {name})\n"
            + (f'      case "$before" in\n{values}      esac\n' if values else "")
            + f"      if [[ $word == -* ]]; then {_words(options)}; else {files}; fi ;;\n"
        )
    first = [*verbs(parser), *(o for a in _options(parser) for o in a.option_strings)]
    return (
        "_scansion() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        f"  if [[ $COMP_CWORD == 1 ]]; then {_words(first)}; return; fi\n"
        '  case "${COMP_WORDS[1]}" in\n' + "".join(cases) + "  esac\n}\n"
        "complete -o filenames -F _scansion scansion\n"
    )


def _quoted(text: str) -> str:
    """Text inside single quotes, for zsh's _arguments: brackets and colons mean something there."""
    for c in "\\[]:":
        text = text.replace(c, "\\" + c)
    return text.replace("'", "'\\''")


def _zsh(parser: argparse.ArgumentParser) -> str:
    cases = []
    for name, verb in verbs(parser).items():
        specs = []
        for action in _options(verb):
            for option in action.option_strings:
                value = ""
                if action.nargs != 0:
                    what = f"({' '.join(_choices(action))})" if _choices(action) else "_files"
                    value = f":{_quoted(str(action.metavar or action.dest))}:{what}"
                specs.append(f"'{option}[{_quoted(action.help or '')}]{value}'")
        words = _positional(verb)
        specs.append(f"'*::argument:({' '.join(words)})'" if words else "'*:file:_files'")
        cases.append(f"    {name}) _arguments " + " ".join(specs) + " ;;\n")
    named = " ".join(f"'{name}:{_quoted(verb.description or '')}'" for name, verb in verbs(parser).items())
    return (
        "#compdef scansion\n_scansion() {\n"
        "  if (( CURRENT == 2 )); then\n"
        f"    local -a words=({named})\n    _describe 'verb' words\n    return\n  fi\n"
        '  local verb="${words[2]}"\n  shift words\n  (( CURRENT-- ))\n'
        '  case "$verb" in\n' + "".join(cases) + "  esac\n}\n"
        "compdef _scansion scansion\n"
    )


def _fish(parser: argparse.ArgumentParser) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["complete -c scansion -n __fish_use_subcommand -f"]
    for name, verb in verbs(parser).items():
        lines.append(f"complete -c scansion -n __fish_use_subcommand -a {name} -d {quoted(verb.description or '')}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for action in _options(verb):
            names = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
            value = (
                ""
                if action.nargs == 0
                else f" -x -a {quoted(' '.join(_choices(action)))}"
                if _choices(action)
                else " -r"
            )
            lines.append(f"complete -c scansion {seen} {names}{value} -d {quoted(action.help or '')}")
        words = _positional(verb)
        if words:
            lines.append(f"complete -c scansion {seen} -f -a {quoted(' '.join(words))}")
    return "\n".join(lines) + "\n"
