"""Rules in the command: in files and on the command line, in models, on pages."""

import pytest
from command_data import labels
from rules_oracle import keeps

import scansion
from scansion import rules

ONE_PHRASE = "at_most_once(NP, scheme=iob2)"


def test_tag_keeps_rules(ok, tmp_path):
    file = tmp_path / "rules"
    file.write_text(f"# one noun phrase\n{ONE_PHRASE}\n\nscheme(iob2)  # and tags that are valid\n")
    free = labels(ok("tag", "crf", "words.txt"))
    ruled = labels(ok("tag", "crf", "words.txt", "--rules", file))
    assert any(not keeps(rules.parse(ONE_PHRASE), row, True) for row in free)
    assert all(keeps(rules.parse(ONE_PHRASE), row, True) and keeps(rules.scheme("iob2"), row, True) for row in ruled)
    assert ruled == labels(ok("tag", "crf", "words.txt", "--rule", ONE_PHRASE, "--rule", "scheme(iob2)"))
    segments = ok("tag", "semi", "words.txt", "--rule", "at_most_once(NP)")
    assert all(keeps(rules.parse(ONE_PHRASE), row, True) for row in labels(segments))


def test_rules_are_kept_in_the_model(ok, tmp_path):
    file = tmp_path / "rules"
    file.write_text(ONE_PHRASE)
    ok("train", "train.txt", "-o", tmp_path / "m", "-q", "--max-iterations", "20", "--rules", file)
    model = scansion.load(tmp_path / "m")
    assert model.rules == [rules.parse(ONE_PHRASE)]
    found = labels(ok("tag", tmp_path / "m", "words.txt"))
    assert all(keeps(model.rules[0], row, True) for row in found)
    both = labels(ok("tag", tmp_path / "m", "words.txt", "--rule", "first(O, B-NP)"))  # those of the model hold too
    assert all(keeps(model.rules[0], row, True) and row[0] in ("O", "B-NP") for row in both)
    assert ONE_PHRASE in ok("inspect", tmp_path / "m")
    ok("train", "train.txt", "-o", tmp_path / "n", "-q", "--rule", "scheme(iob2)", "--train-with-rules")
    assert scansion.load(tmp_path / "n").train_with_rules is True


def test_pages_show_where_rules_changed_the_answer(ok, tmp_path):
    ok("tag", "crf", "words.txt", "-o", tmp_path / "out", "--rule", ONE_PHRASE, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    free = labels(ok("tag", "crf", "words.txt"))
    changed = sum(not keeps(rules.parse(ONE_PHRASE), row, True) for row in free)
    assert page.count("Rules changed this answer") == changed > 0
    assert f"<code>{ONE_PHRASE}</code>" in page
    ok("tag", "crf", "words.txt", "-o", tmp_path / "out", "--html", tmp_path / "free.html")
    assert "Rules changed this answer" not in (tmp_path / "free.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rule", "once(NP"), "--rule: the rule ends too early"),
        (("--rule", "once(NP)"), "names 'NP', which is no label here"),
        (("--rules", "words.txt"), "words.txt: "),
        (("--rules", "nothing"), "nothing: No such file"),
    ],
)
def test_rules_that_cannot_be_read(call, arguments, message):
    code, out, err = call("tag", "crf", "words.txt", *arguments)
    assert code == (2 if "--rule" in arguments else 1)
    assert not out and message in err and err.count("\n") == 1


def test_y_that_breaks_a_rule(call, tmp_path):
    code, _, err = call("train", "train.txt", "-o", tmp_path / "m", "-q", "--rule", "once(O)", "--train-with-rules")
    assert code == 0
    code, _, err = call("train", "train.txt", "-o", tmp_path / "m", "-q", "--rule", "first(O)", "--train-with-rules")
    assert code != 0 and "breaks the rule first(O)" in err


def test_estimators_tell_which_rules_answers_break():
    X = [[{"w": "1"}, {"w": "2"}, {"w": "1"}]]
    model = scansion.CRF(rules=["at_most_once(a, b)", "last(a)"]).fit(X, [["a", "b", "a"]])
    assert model.broken_rules([["a", "b", "a"], ["a", "a", "b"], ["b", "a", "a"]]) == [
        [rules.at_most_once("a")],
        [rules.last("a")],
        [],
    ]
    assert model.broken_rules([["a", "b", "a"]], rules=[]) == [[]]
    y = [
        [[(0, 3, "x")], [(0, 1, "a"), (1, 3, "b")]],
        [[(0, 1, "x"), (1, 3, "y")], [(0, 1, "b"), (1, 2, "b"), (2, 3, "a")]],
    ]
    nested = scansion.HierarchicalCRF(levels=["top", "low"], max_iterations=3).fit(X * 2, y)
    once = rules.at_most_once("b", level="low")
    inside = rules.at_most_once("b", level="low", within="top")
    assert nested.broken_rules(y, [once, inside]) == [[], [once]]
    assert all(broken == [] for broken in nested.broken_rules(nested.predict(X, rules=[once]), [once]))
