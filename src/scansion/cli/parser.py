"""The command line's grammar: verbs, options, help. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from scansion.cli import printable
from scansion.features.templates import BUILT_IN, DIALECTS
from scansion.formats.reading import FORMATS, is_encoding

__all__ = ["build_parser", "verbs"]

ALGORITHMS = ("lbfgs", "auto", "l2sgd", "asgd", "mm", "ap", "pa", "arow")
MODELS = {"crf": "CRF", "semicrf": "SemiCRF", "hierarchical": "HierarchicalCRF"}
SCHEMES = ("auto", "iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou", "plain")
SHELLS = ("bash", "zsh", "fish")

_SEPARATORS = {"tab": "\t", "space": " ", "comma": ",", "\\t": "\t", "whitespace": "", "auto": ""}

_NEGATIVE = re.compile(r"-\d")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Asks for the terminal's width only when help is shown: the parser makes a formatter for every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=98)

    def format_help(self) -> str:
        import shutil

        self._width = min(shutil.get_terminal_size().columns - 2, 118)
        return super().format_help()


# what CRF++ and Wapiti call otherwise
_HINTS = {
    "-c": "CRF++'s -c C is --c2 X with X = 1 / (2 C)",
    "-f": "CRF++'s -f N is --min-freq N, which counts attributes with their labels",
    "-m": "CRF++'s -m N is --max-iterations N",
    "-e": "CRF++'s -e X is --set epsilon=X",
    "-1": "Wapiti's -1 X is --c1 X",
    "--rho1": "Wapiti's --rho1 X is --c1 X",
    "-2": "Wapiti's -2 X is --c2 Y with Y = X / 2",
    "--rho2": "Wapiti's --rho2 X is --c2 Y with Y = X / 2",
    "-i": "Wapiti's -i N is --max-iterations N",
    "--maxiter": "Wapiti's --maxiter N is --max-iterations N",
    "mira": "the nearest is --algorithm pa",
    "crf-l1": "L1 is --c1 X with --algorithm lbfgs",
    "crf-l2": "L2 is --c2 X with --algorithm lbfgs",
    "l-bfgs": "it is called lbfgs",
    "sgd-l1": "L1 is --c1 X with --algorithm lbfgs, which ends at the same optimum",
    "bcd": "--algorithm lbfgs ends at the same optimum",
    "rprop": "--algorithm lbfgs ends at the same optimum",
}


class _Parser(argparse.ArgumentParser):
    """An error in one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Help, "allow_abbrev": False, **kwargs})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but options may stand anywhere."""
        return super().parse_known_args(None if args is None else self._options_first(args), namespace)

    def _options_first(self, args: Sequence[str]) -> list[str]:
        """The arguments of a verb with its options before the rest: argparse wants all positional ones side by side."""
        if self._subparsers is not None:
            return list(args)
        options: list[str] = []
        rest: list[str] = []
        coming = iter(args)
        for argument in coming:
            action = self._option_string_actions.get(argument)
            if argument == "--":
                rest += [argument, *coming]
            elif action is None and argument.split("=")[0] in _HINTS and self.prog.endswith("train"):
                self.error(f"unrecognized arguments: {argument}; {_HINTS[argument.split('=')[0]]}")
            elif action is not None and action.nargs != 0:
                value = next(coming, None)
                if action.dest == "algorithm" and str(value).lower() in _HINTS:
                    self.error(f"argument {argument}: invalid choice: {value!r}; {_HINTS[str(value).lower()]}")
                if value is not None and _NEGATIVE.match(value) and argument.startswith("--"):
                    options.append(f"{argument}={value}")  # --labels -2,-1 is no option -2
                else:
                    options += [argument] if value is None else [argument, value]
            else:
                (options if argument.startswith("-") and argument != "-" else rest).append(argument)
        return options + rest

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looked up when it is asked for: metadata take their time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import scansion

        print(f"scansion {scansion.__version__}")
        parser.exit(0)


def _separator(text: str) -> str:
    return _SEPARATORS.get(text.lower(), text)


def _column(text: str) -> int | str:
    """A column by number or by name."""
    try:
        return int(text)
    except ValueError:
        if not text.strip():
            raise argparse.ArgumentTypeError("expected columns by number or name, as in 0,2 or word,pos") from None
        return text.strip()


def _some_columns(text: str) -> tuple[int | str, ...]:
    return tuple(map(_column, text.split(",")))


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected a number from {least} on, got {text!r}")
        return value

    return number


def _strength(text: str) -> Any:
    """One number, one for each order, or one for each group, by name."""
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        values = [float(value) for _, _, value in parts]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number, one for each order as in 0.1,1, or for each group as in lengths=0.1,w=2; got {text!r}"
        ) from None
    if any(sign for _, sign, _ in parts):
        return {name: value for (name, _, _), value in zip(parts, values, strict=True)}
    return values[0] if len(values) == 1 else values


def _length(text: str) -> Any:
    return "by label" if text in ("by-label", "by label") else _at_least(1)(text)


def _setting(text: str) -> tuple[str, Any]:
    import ast

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name.strip(), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name.strip(), value


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command, or of one verb: the others' options take time to make."""
    parser = _Parser(
        prog="scansion",
        description="Find structure in sequences: labels, segments, and segments inside segments.",
        epilog="example: scansion train train.txt -o model && scansion tag model test.txt\n"
        "exit codes: 0 all right, 1 data, model or file, 2 command line, 130 interrupted",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    everywhere = _Parser(add_help=False)
    for one in (parser, everywhere):  # before the verb or behind it; a default would hide what was given before
        one.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show a traceback when something goes wrong"
        )
    table = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser, prog="scansion")

    for name, (summary, example, add) in _VERBS.items():
        if only in _VERBS and only != name:
            continue
        verb = table.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example: {example}",
            parents=[everywhere],
            add_help=name != "demo",
        )
        add(verb)
    return parser


def verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the verbs."""
    return dict(next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices)


def _encoding_name(text: str) -> str:
    if not is_encoding(text):
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r}; some are utf-8, latin-1, euc-jp, utf-16")
    return text


def _encoding(group: Any, explained: str) -> None:
    group.add_argument("--encoding", type=_encoding_name, metavar="NAME", help=explained)


def _columns(group: Any) -> None:
    """Options about columns of text."""
    group.add_argument(
        "--separator",
        type=_separator,
        metavar="TEXT",
        help="between columns: tab, comma, or any text; default: spaces and tabs, of CSV what the file has",
    )
    _encoding(group, "of the text, as latin-1, euc-jp, utf-16 (default: utf-8)")
    group.add_argument("--comment", metavar="PREFIX", help="pass over lines that begin so, as '#'")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="CSV: the first row has the names of the columns; default: where that is clear",
    )
    group.add_argument(
        "--group",
        type=_column,
        metavar="COLUMN",
        help="CSV: tokens of a sequence have the same there, as a sentence_id",
    )
    group.add_argument(
        "--labels",
        type=_some_columns,
        action="append",
        metavar="COLUMN",
        help="the column of the labels, by name, from 0 on or -1 for the last (default); two (--labels 2,3) are two "
        "levels, the outer one first; of JSON its key",
    )
    group.add_argument(
        "--columns", type=_some_columns, metavar="C,C", help="the columns that the template counts 0, 1, ..., or names"
    )


def _form(parser: argparse.ArgumentParser, tagging: bool = False) -> None:
    """Options that say how a file is to be read; for tagging, the model says it unless they are given."""
    group = parser.add_argument_group("the file" + (" (as in training, unless said otherwise)" if tagging else ""))
    group.add_argument("--format", choices=FORMATS, help="what the file holds; by its name unless given")
    _columns(group)


def _train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="files to learn from, gzip or plain; - for standard input"
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="where to write the model")
    _form(parser)
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model", choices=MODELS, default="crf", help="labels, segments, or segments inside segments (default: crf)"
    )
    group.add_argument(
        "--order",
        type=_at_least(0),
        metavar="N",
        help="longest label dependency; default: 1, or 0 if the template has no B",
    )
    group.add_argument(
        "--max-length",
        type=_length,
        metavar="N",
        help="semicrf: longest segment, or by-label (default: the longest one seen)",
    )
    group.add_argument("--scheme", choices=SCHEMES, default="auto", help="how labels mark segments (default: guessed)")
    group.add_argument("--partial", action="store_true", help="labels may be unknown, '?', or one of several, 'A|B'")
    _rules(group)
    group.add_argument("--train-with-rules", action="store_true", help="learn under the rules as well")
    group = parser.add_argument_group("features")
    group.add_argument("-t", "--template", metavar="FILE", help="a template of CRF++, or patterns of Wapiti")
    group.add_argument("--dialect", choices=DIALECTS, help="whose template it is; guessed unless given")
    group.add_argument("--features", choices=tuple(BUILT_IN), help="a built-in template, for those who have none")
    group.add_argument("--min-freq", type=float, metavar="N", help="leave out features that occur less often")
    group.add_argument("--all-possible-states", action="store_true", help="also features that do not occur")
    group.add_argument("--all-possible-transitions", action="store_true", help="also label pairs that do not occur")
    group = parser.add_argument_group("training")
    group.add_argument("-a", "--algorithm", choices=ALGORITHMS, default="lbfgs", help="default: lbfgs")
    group.add_argument("--c1", type=_strength, metavar="X", help="strength of the L1 penalty (default: 0)")
    group.add_argument(
        "--c2",
        type=_strength,
        metavar="X",
        help="strength of the L2 penalty (default: 1); for each group as in lengths=0.1,transitions=0.01,w=2",
    )
    group.add_argument("--max-iterations", type=_at_least(0), metavar="N", help="stop after so many")
    group.add_argument(
        "--dev", metavar="FILE", help="development data: stop when the score on them no longer rises, keep the best"
    )
    group.add_argument(
        "--patience", type=_at_least(1), metavar="N", help="with --dev: iterations to wait (default: 10)"
    )
    group.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="threads, -1 for all processors (default: 1)"
    )
    group.add_argument("--seed", type=_at_least(0), metavar="N", help="of the online algorithms")
    group.add_argument(
        "--cache",
        metavar="DIR",
        help="for files larger than memory: write them there, encoded, and learn from that; the next call with the "
        "same files finds it",
    )
    group.add_argument(
        "--set",
        dest="settings",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of the estimator",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")


def _rules(group: Any) -> None:
    """Options that give rules."""
    group.add_argument("--rules", action="append", default=[], metavar="FILE", help="rules to keep, one a line")
    group.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a rule to keep, as 'at_most_once(StreetName)'"
    )


def _tag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="what train wrote")
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="what to label, gzip or plain; - (default) for standard input",
    )
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write (default: standard output)")
    _form(parser, tagging=True)
    group = parser.add_argument_group("answers")
    group.add_argument("--kbest", type=_at_least(1), metavar="K", help="the K best, with their probabilities")
    group.add_argument("--marginals", action="store_true", help="the probability of each label that is given")
    group.add_argument("--all-marginals", action="store_true", help="the probabilities of all labels")
    group.add_argument(
        "--constraints",
        action="store_true",
        help="the file's labels are known: keep them; '?' is unknown, 'A|B' one of these",
    )
    _rules(group)
    group.add_argument(
        "--compressed", action="store_true", help="the labels that a sequence goes through, and not where"
    )
    group.add_argument("--html", metavar="FILE", help="also write a page to look at (the first 200 sequences)")
    group.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="threads, -1 for all processors (default: 1)"
    )


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="what train wrote")
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="labelled sequences; - (default) for standard input"
    )
    _form(parser, tagging=True)
    parser.add_argument(
        "--scheme", choices=SCHEMES, default="auto", help="how labels mark segments (default: the model's, or guessed)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="also write a page: confusion, reliability, truth beside prediction, errors first",
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="threads, -1 for all processors (default: 1)"
    )


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="what train wrote")
    parser.add_argument(
        "--top",
        type=_at_least(0),
        default=20,
        metavar="N",
        help="so many of the strongest features of each kind (default: 20)",
    )
    _encoding(parser, "of the text in a model of another tool (default: utf-8)")
    parser.add_argument("--html", metavar="FILE", help="write a page to look at")
    parser.add_argument("--json", action="store_true", help="write JSON")


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="IN", help="the file to read, gzip or plain; - for standard input; or a model of any tool"
    )
    parser.add_argument(
        "target", nargs="?", default="-", metavar="OUT", help="the file to write (default: standard output)"
    )
    group = parser.add_argument_group("what is read")
    group.add_argument("--from", dest="source_format", choices=FORMATS, help="by its name unless given")
    group.add_argument(
        "--from-scheme", choices=SCHEMES, default="auto", help="default: guessed from the first sequences"
    )
    _columns(group)
    group.add_argument("--no-labels", action="store_true", help="there are no labels")
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--to",
        dest="target_format",
        choices=(*FORMATS, "scansion"),
        help="by its name unless given; of a model: crfsuite or scansion",
    )
    group.add_argument("--to-scheme", choices=SCHEMES[1:], help="rewrite the labels; default: as they are")
    group.add_argument("--spans", action="store_true", help="jsonl: spans in place of labels")
    group.add_argument("-t", "--template", metavar="FILE", help="make attributes by a template (for crfsuite)")
    group.add_argument("--features", choices=tuple(BUILT_IN), help="make attributes by a built-in template")
    group.add_argument("--dialect", choices=DIALECTS, help="whose template it is; guessed unless given")
    group.add_argument(
        "--output-separator", type=_separator, metavar="TEXT", help="between columns (default: tab, of CSV a comma)"
    )


def _demo(parser: argparse.ArgumentParser) -> None:
    """Nothing: its arguments, help among them, are handed over."""


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


# verb -> what it does, an example, and what adds its options
_VERBS = {
    "train": ("learn a model from labelled sequences", "scansion train train.txt -t template -o model", _train),
    "tag": ("label sequences with a model", "scansion tag model test.txt > labelled.txt", _tag),
    "evaluate": ("compare a model's labels with those of a file", "scansion evaluate model test.txt", _evaluate),
    "inspect": ("show what a model has learnt", "scansion inspect model --top 10", _inspect),
    "convert": (
        "rewrite files in another format or another tag scheme",
        "scansion convert train.txt train.jsonl --to-scheme bilou",
        _convert,
    ),
    "demo": ("show what the library is for, on data that come with it", "scansion demo", _demo),
    "completion": ("print the shell's completion of this command", 'eval "$(scansion completion bash)"', _completion),
}


def labels_given(given: Sequence[tuple[int | str, ...]] | None) -> tuple[int | str, ...] | None:
    """The columns of ``--labels``, which may be given more than once."""
    return None if given is None else tuple(column for columns in given for column in columns)
