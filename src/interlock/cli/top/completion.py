"""`interlock completion`: a script for a shell that completes commands and actions, from the table of commands."""

import argparse
from collections.abc import Callable, Mapping

from interlock.cli.commands import COMMANDS, Group


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell that reads the script")


def run(options: argparse.Namespace) -> int:
    """Print the script of a shell; return the exit code."""
    print(_SCRIPTS[options.shell](_names()), end="")
    return 0


def _names() -> dict[str, tuple[str, ...]]:
    """Return each command with its actions; a command without actions has none."""
    return {
        row.name: tuple(command.name for command in row.commands) if isinstance(row, Group) else () for row in COMMANDS
    }


def _bash(names: Mapping[str, tuple[str, ...]]) -> str:
    cases = "".join(f'      {name}) words="{" ".join(actions)}" ;;\n' for name, actions in names.items() if actions)
    return f"""\
# interlock completion bash > ~/.local/share/bash-completion/completions/interlock
_interlock() {{
  local words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{" ".join(names)}"
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
  fi
  COMPREPLY=( $(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}") )
}}
complete -o default -F _interlock interlock
"""


def _zsh(names: Mapping[str, tuple[str, ...]]) -> str:
    cases = "".join(f"      {name}) compadd {' '.join(actions)} ;;\n" for name, actions in names.items() if actions)
    return f"""\
#compdef interlock
# interlock completion zsh > "${{fpath[1]}}/_interlock"
_interlock() {{
  if (( CURRENT == 2 )); then
    compadd {" ".join(names)}
  elif (( CURRENT == 3 )); then
    case "${{words[2]}}" in
{cases}      *) _files ;;
    esac
  else
    _files
  fi
}}
if [ "$funcstack[1]" = "_interlock" ]; then _interlock "$@"; else compdef _interlock interlock; fi
"""


def _fish(names: Mapping[str, tuple[str, ...]]) -> str:
    first = f"complete -c interlock -n __fish_use_subcommand -f -a '{' '.join(names)}'\n"
    lines = (
        f"complete -c interlock -n '__fish_seen_subcommand_from {name}' -a '{' '.join(actions)}'\n"
        for name, actions in names.items()
        if actions
    )
    return f"# interlock completion fish > ~/.config/fish/completions/interlock.fish\n{first}{''.join(lines)}"


_SCRIPTS: Mapping[str, Callable[[Mapping[str, tuple[str, ...]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
