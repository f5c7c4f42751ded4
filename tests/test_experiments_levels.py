"""Experiments with levels (papers 000 and 003), by hand-made cases and short runs; no data set is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def test_runs_of_a_level_end_where_those_above_do():
    from experiments.levels import nested_runs, spread

    above, below = nested_runs([list("AABBB"), list("xyyyx")])
    assert above == [(0, 2, "A"), (2, 5, "B")]
    assert below == [(0, 1, "x"), (1, 2, "y"), (2, 4, "y"), (4, 5, "x")]
    assert spread(below) == list("xyyyx")


def test_a_chain_over_products_answers_for_both_levels_and_takes_what_is_known():
    from experiments.levels import ProductChain

    X = [[["a"], ["b"], ["c"]], [["c"], ["b"], ["a"]]] * 3
    y = [(["P", "P", "Q"], [1, 2, 1]), (["Q", "P", "P"], [1, 2, 1])] * 3
    model = ProductChain(c2=0.01, max_iterations=30).fit(X, y)
    assert model.products == [("P", 1), ("P", 2), ("Q", 1)]
    assert model.predict(X[:1]) == [[["P", "P", "Q"], [1, 2, 1]]]
    assert model.predict(X[:1], [[[None, "Q", None], [None, None, None]]])[0][0][1] == "Q"
    partly = ProductChain(c2=0.01).fit(X, [([None, "P", "Q"], [1, 2, 1]), *y[1:]])
    assert partly.predict(X[:1]) == [[["P", "P", "Q"], [1, 2, 1]]]


def test_a_grid_of_levels_equals_enumeration():
    """Its weights are shared by combinations; log Z and expectations by all of them."""
    import itertools

    from experiments.dcrf import Dcrf

    X = [[["a"], ["b", "c"], ["a"]], [["c"], ["a", "b"]]]
    y = [(["P", "P", "Q"], [1, 2, 1]), (["Q", "P"], [1, 2])]
    model = Dcrf(c2=0.1).fit(X, y)
    rng = np.random.default_rng(0)
    model.weights = np.where(model.seen, rng.normal(size=model.seen.shape), 0.0)
    labels, transitions, pairs = model._columns()
    for x in X:
        scores, features = [], []
        for answer in itertools.product(
            itertools.product("PQ", repeat=len(x)), itertools.product((1, 2), repeat=len(x))
        ):
            counts = np.zeros(model.seen.shape)
            numbers = [["PQ".index(a) for a in answer[0]], [b - 1 for b in answer[1]]]
            for t, token in enumerate(x):
                rows = [*(model.names[name] for name in token), -1]
                counts[rows, pairs.start + 2 * numbers[0][t] + numbers[1][t]] += 1
                for d in (0, 1):
                    counts[rows, labels[d].start + numbers[d][t]] += 1
                    if t:
                        counts[rows, transitions[d].start + 2 * numbers[d][t - 1] + numbers[d][t]] += 1
            scores.append(float((counts * model.weights).sum()))
            features.append(counts)
        table, offsets = model._encode([x])
        log_z, expected = model._expected(table, offsets, model.weights)
        wanted = np.log(np.exp(scores).sum())
        assert log_z == pytest.approx(wanted)
        assert expected == pytest.approx(np.tensordot(np.exp(np.array(scores) - wanted), np.array(features), 1))


def test_a_grid_of_levels_learns_and_takes_what_is_known():
    from experiments.dcrf import Dcrf

    X = [[["a"], ["b"], ["c"]], [["c"], ["b"], ["a"]]] * 3
    y = [(["P", "P", "Q"], [1, 2, 1]), (["Q", "P", "P"], [1, 2, 1])] * 3
    model = Dcrf(c2=0.01).fit(X, y)
    assert model.predict(X[:1]) == [[["P", "P", "Q"], [1, 2, 1]]]
    assert model.predict(X[:1], [[[None, "Q", None], [None, None, None]]])[0][0][1] == "Q"
    best, steps = (Dcrf(c2=1.0, algorithm=name, max_iterations=200).fit(X, y) for name in ("lbfgs", "sgd"))
    assert steps.predict(X[:2]) == model.predict(X[:2])
    assert best.loss_ < steps.loss_ < 1.02 * best.loss_


def test_noun_phrases_and_groups_of_tags():
    from experiments import noun_phrases

    tags = ["NNP", "VBD", "MD", "JJR", "RB", "PRP", ",", "WRB"]
    groups = ["noun", "verb", "verb", "adjective", "adverb", "other", "other", "other"]
    assert [noun_phrases.group(tag) for tag in tags] == groups
    assert noun_phrases.shapes("McDonald") == ["capital", "mixed"] and noun_phrases.shapes("the") == []
    assert noun_phrases.shapes("A") == ["capital", "one-capital"] and noun_phrases.shapes("1990s") == ["digit"]
    sentence = noun_phrases.Sentence(
        ["He", "said", "so", "Monday", "today"],
        ["PRP", "VBD", "RB", "NNP", "NN"],
        ["B-NP", "B-VP", "B-ADVP", "B-NP", "B-NP"],
    )
    assert sentence.chunks == ["B-NP", "O", "O", "B-NP", "B-NP"]
    assert sentence.phrases() == [(0, 1, "NP"), (1, 3, "O"), (3, 4, "NP"), (4, 5, "NP")]
    assert noun_phrases.iob2(sentence.phrases()) == sentence.chunks


def test_models_of_noun_phrases():
    from experiments import noun_phrases

    some = noun_phrases.Sentence(["the", "end", "is", "near"], ["DT", "NN", "VBZ", "JJ"], ["B-NP", "I-NP", "B-VP", "O"])
    other = noun_phrases.Sentence(["is", "it"], ["VBZ", "PRP"], ["B-VP", "B-NP"])
    for algorithm, limit in (("lbfgs", None), ("l2sgd", 20)):
        task = noun_phrases.Task([some, other] * 6, [some, other], algorithm=algorithm, max_iterations=limit)
        found = {}
        for model in noun_phrases.MODELS:
            found.update(model(task, c2=0.1))
            assert task.iterations > 1
        assert found.keys() == set(noun_phrases.NAMES)
        assert all(noun_phrases.f1([some.chunks, other.chunks], columns) == 100 for columns in found.values())


def test_attributes_of_noun_phrases_name_frequent_words_only():
    from experiments import noun_phrases

    often = noun_phrases.Sentence(["the", "end"], ["DT", "NN"], ["B-NP", "I-NP"])
    once = noun_phrases.Sentence(["the", "Cat", "end"], ["DT", "NN", "VB"], ["B-NP", "I-NP", "O"])
    attributes = noun_phrases.Attributes([often] * 4 + [once])
    assert attributes.words == {"the", "end"} and attributes.pairs == {("the", "end")}
    first, _ = attributes(often, tagged=False)
    assert first == [
        "bias",
        "w[-2]:begin",
        "w[-1]:begin",
        "w[0]=the",
        "w[0]|w[1]=the|end",
        "w[1]=end",
        "w[2]:end",
    ]
    middle = attributes(once, tagged=True)[1]
    assert not any("Cat" in name for name in middle) and "shape[0]=capitalised" in middle
    assert [name for name in middle if name.startswith("pos")] == [
        "pos[-1]=other",
        "pos[-1]|pos[0]=other|noun",
        "pos[0]=noun",
        "pos[0]|pos[1]=noun|verb",
        "pos[1]=verb",
    ]


def test_a_person_in_the_kitchen_walks_as_the_activities_say():
    from experiments import kitchen
    from experiments import simulated_kitchen as world
    from scansion.metrics import compress

    numbers = {n for chain in world.ACTIVITIES.values() for n in chain if n}
    assert numbers == set(world.ROUTES) == set(range(1, 13))
    for activity, chain in world.ACTIVITIES.items():
        assert all(sum(following.values()) == pytest.approx(1.0) for following in chain.values())
        for u, v in kitchen.true_transitions()[activity]:
            assert world.ROUTES[u][1] == world.ROUTES[v][0]  # no jumps
        points, labels = world.walk(np.random.default_rng(3), activity)
        assert points.shape == (len(labels), 2)
        order = compress(labels)
        assert all(v in chain[u] for u, v in zip([0, *order], [*order, 0], strict=True))
        assert points[-1] == pytest.approx(world.PLACES["door"])
        cells = world.track(np.random.default_rng(0), points, 2.0)
        assert cells.min() >= 0 and (cells.max(axis=0) < (world.WIDTH, world.HEIGHT)).all()
    still = world.attributes(np.array([[0, 1], [1, 1], [2, 1]]))
    assert still[1] == ["bias", "cell=1,1", "dx=1", "dy=0", "dx,dy=1,0"]
    tokens = world.attributes(np.array([[0, 1], [3, 5], [3, 5], [3, 6]]))
    assert kitchen.MeanVelocity()(tokens, 0, 4) == {"velocity": pytest.approx((5 + 0 + 1) / 3)}
    assert kitchen.MeanVelocity()(tokens, 1, 2) == {}
    assert kitchen.cells_visited(tokens, 1, 3) == ["visited cell=3,5"]


def test_what_is_known_of_the_kitchen():
    from experiments import kitchen
    from experiments.simulated_kitchen import ACTIVITIES, simulate

    data = simulate(0, 2)
    assert len(data.X) == len(data.X_test) == 6
    assert all(len(x) == len(a) == len(b) for x, (a, b) in zip(data.X, data.y, strict=True))
    assert {y[0][0] for y in data.truth} == set(ACTIVITIES)
    assert simulate(0, 2) == data != simulate(1, 2)
    rng = np.random.default_rng(0)
    assert kitchen.boundaries("aab") == [0, 1, 1]
    hidden = kitchen.hide([["a"] * 400, [1] * 400], 0.5, rng)
    assert [len(column) for column in hidden] == [400, 400] and 150 < hidden[0].count(None) < 250
    column = [label for label in range(200) for _ in range(3)]
    (labels,), (ends,) = kitchen.hide_segments([column], 0.5, rng)
    kept = [label for label in labels[::3] if label is not None]
    assert 80 < len(kept) < 120 and labels == [label if label in kept else None for label in column]
    for label in range(200):
        u = 3 * label
        inside, after = [0, 0] if label in kept else [None, None], label in kept or label + 1 in kept
        assert ends[u : u + 3] == [*inside, 1 if after else None]
    told = [np.arange(len(y[0])) < 2 for y in data.truth]
    labels, stops = kitchen.shown(data.truth, told)
    assert labels[0][0] == [data.truth[0][0][0]] * 2 + [None] * (len(told[0]) - 2) and stops[0][0][:3] == [0, 0, None]


def test_models_of_the_kitchen_learn_from_all_labels_and_from_some():
    from experiments import kitchen
    from experiments.simulated_kitchen import simulate

    data = simulate(0, 1)
    _, ends = kitchen.shown(data.truth, [np.ones(len(y[0]), bool) for y in data.truth])
    for name in kitchen.MODELS:
        for suffix, (y, known) in kitchen.partly(data.y, 5).items():
            model = kitchen.model(name, data, max_iterations=2).fit(data.X, y, known)
            above, below = kitchen.accuracies(data.truth, model.predict(data.X_test, decode="marginal"))
            assert (above is None) == (name == "flat CRF") and 0 < below <= 100
            if suffix:
                continue
            assert kitchen.accuracies(data.truth, model.predict(data.X_test, data.truth))[1] == 100
            if model.timed:
                cuts = [kitchen.boundaries(answer[0])[:-1] for answer in model.predict(data.X_test, ends=ends)]
                assert not any(map(any, cuts))  # activities are told to last


def test_signs_of_transitions():
    from experiments import kitchen

    weights = {
        ("activity", None, "snack", "short meal"): 1.0,
        ("trajectory", "snack", 5, 6): 0.5,
        ("trajectory", "snack", 5, 5): 2.0,
        ("trajectory", "snack", 5, 7): -0.5,
    }
    assert kitchen.positive_transitions(weights) == {"short meal": set(), "snack": {(5, 6)}, "normal meal": set()}


def test_phases_of_a_salad_end_where_actions_do():
    from experiments import salads

    lines = ["7000000 9000000 cut_prep", "5000000 9000000 one", "9400000 12000000 two", "9000000 12000000 mix_core"]
    intervals = salads.phase_intervals([*lines, "12000000 13000000 two", "\r\n"], ["one", "two"])
    assert [label for _, _, label in intervals] == ["one", "two", "two"]
    assert intervals[0][:2] == pytest.approx((-2.0, 2.0)) and intervals[1][:2] == pytest.approx((2.4, 5.0))
    assert salads.phase_labels(intervals, ["a", "b", "b", "c", "d"]) == ["one"] * 3 + ["two"] * 2  # 1 and 3: near 2.2
    assert salads.phase_labels(intervals, ["a", "b", "c", "c", "d"]) == ["one"] * 2 + ["two"] * 3


def test_time_steps_of_a_salad():
    from experiments import salads

    scores = np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [5.0, 5.0]])
    assert salads.inputs(scores, 1.0, 1).shape == (2, 5)
    assert salads.inputs(scores, 1.0, 1)[1] == pytest.approx([1.0, 0.5, 0.5, 0.5, 0.5])
    video = salads.Video("v", 1, scores, list("ppqq"), list("xxyz"))
    assert video.columns == (["p", "q"], ["x", "z"])
    assert salads.voted(scores, ["x", "z"]) == ["x", "x"]


# ---- contests ----------------------------------------------------------------------------------------


class Walk:
    """Numbers that tell the lower label, two of which make up an upper one."""

    def __init__(self, rng, group):
        above = [label for label in rng.permutation(["P", "Q"]) for _ in range(rng.integers(6, 12))]
        below = [{"P": "ab", "Q": "bc"}[label][t // 4 % 2] for t, label in enumerate(above)]
        self.columns = (above, below)
        self.group = group
        self.seen = np.eye(3)[["abc".index(label) for label in below]] + rng.normal(scale=0.5, size=(len(below), 3))


def walks(n=3):
    rng = np.random.default_rng(0)
    return [Walk(rng, group) for group in range(4) for _ in range(n)]


def models(levels=("above", "below")):
    from experiments import contest

    return {
        "CRF": (contest.crf(0), contest.crf(1)),
        "SemiCRF": (contest.semi_crf(0), contest.semi_crf(1)),
        "cascade": (contest.cascade(0), contest.cascade(1, segments=True)),
        "product chain": (contest.product,),
        "HSCRF": (lambda **p: contest.Hierarchical(levels, all_possible_states=True, **p),),
    }


def test_a_contest_leaves_each_group_out_and_chooses_on_the_others():
    from experiments.contest import DECODINGS, Contest
    from experiments.report import Options

    asked = []

    def seen(name, columns):
        def features(train):
            asked.append((name, sorted({walk.group for walk in train})))
            return lambda walk: np.hstack([np.ones((len(walk.seen), 1)), walk.seen[:, columns]])

        return features

    found = Contest(
        ("above", "below"),
        walks(),
        {"nothing": seen("nothing", []), "numbers": seen("numbers", [0, 1, 2])},
        models(),
        {"": [{"c2": 1.0}], "CRF": [{"c2": 1.0}, {"c2": 30.0}], "cascade": "CRF"},
        choices=1,
    )
    found.run(Options(jobs=1))
    assert found.results["folds"] == ["0", "1", "2", "3"] and found.results["features"] == ["numbers"] * 4
    # what is chosen for a fold never sees its group: the three others, or two of them
    trained = [groups for _, groups in asked]
    assert all(len(groups) in (2, 3) for groups in trained)
    whole = [groups for groups in trained if len(groups) == 3]
    assert whole == [groups for groups in ([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]) for _ in range(8)]  # makers
    assert found.results["chosen"].keys() == {
        *(f"{name}: {level}" for name in ("CRF", "SemiCRF", "cascade") for level in ("above", "below")),
        "product chain: above, below",
        "HSCRF: above, below",
    }
    assert found.results["chosen"]["CRF: below"] == found.results["chosen"]["cascade: below"] == [{"c2": 1.0}] * 4
    for decode in DECODINGS:
        for levels in found.results["figures"][decode].values():
            for measures in levels.values():
                assert all(len(values) == 4 and all(0 <= v <= 100 for v in values) for values in measures.values())
    assert np.mean(found.results["figures"]["marginal"]["HSCRF"]["below"]["accuracy"]) > 70
    tables = [*found.tables("groups"), found.differences("HSCRF", "groups")]
    assert [len(table.rows) for table in tables] == [5, 5, 4]
    assert found.converged() == f"All {found.fits} trainings ran until the stopping rule of L-BFGS held."


def test_parts_of_a_contest():
    from experiments.contest import Contest

    def parts(**settings):
        found = Contest(("above", "below"), walks(), {}, {}, {}, **settings)
        return [(sorted({e.group for e in a}), sorted({e.group for e in b})) for a, b in found._parts(found.sequences)]

    assert parts()[:2] == [([1, 2, 3], [0]), ([0, 2, 3], [1])] and len(parts()) == 4
    assert parts(inner=2) == [([1, 3], [0, 2]), ([0, 2], [1, 3])]
    assert parts(inner=2, choices=1) == [([0, 2], [1, 3])]


def test_a_cascade_sees_the_other_levels_by_models_that_did_not_see_the_sequence():
    from experiments import contest

    data = walks()
    X, y, groups = [w.seen for w in data], [w.columns for w in data], [w.group for w in data]
    model = contest.cascade(0)(c2=1.0)
    model.fit(X, y, groups)
    assert model.model.attributes_[-3:] == ["3", "4", "5"]  # probabilities of a, b and c
    answers = model.predict(X, "viterbi")
    assert all(answer[1] is None and set(answer[0]) <= {"P", "Q"} for answer in answers)
    named = [[{"x": float(v)} for v in x[:, 0]] for x in X]
    model.fit(named, y, groups)
    assert "level 1: a" in model.model.attributes_


def test_videos_of_cad120():
    from experiments import cad120

    def part(first, last, label, things):
        boxes = [[0.1, 0.2, 0.5, 0.6]] * (last - first + 1)
        return {
            "start": first,
            "end": last,
            "sub_activity": label,
            "human_bboxes": boxes,
            "object_bboxes": things,
        }

    seen, lost = [0.4, 0.4, 0.6, 0.6], [0.0] * 4
    moved = [0.5, 0.4, 0.7, 0.6]
    content = {
        "activity_names": ["stacking", "eating"],
        "sub_activity_names": ["reaching", "moving"],
        "videos": {
            "v": {
                "high_level_activity": 1,
                "subject": "subject3",
                "object_type": "1:bowl",
                # the second part lacks the box of its last frame, the object is lost for a frame in the first
                "segments": [part(5, 16, 0, [seen] * 5 + [lost] + [seen] * 6), part(17, 20, 1, [moved] * 3)],
            }
        },
    }
    (video,) = cad120.read_videos(content)
    assert (video.group, video.activity, video.kind, len(video.steps)) == ("subject3", "eating", "bowl", 16)
    assert video.thing[5] == pytest.approx(seen) and not video.seen[5] and video.seen.sum() == 15
    assert video.thing[-1] == pytest.approx(moved)
    assert video.columns == (["eating"] * 2, ["reaching", "moving"])
    table = cad120.quantities(video)
    assert table.shape[0] == 2 and np.isfinite(table).all()
    for features in cad120.FEATURES.values():
        array = features([video])(video)
        assert len(array) == 2 and np.isfinite(array).all() and array[0, -1] == 1.0  # the kind of its object
    assert cad120.shifted(np.array([[1.0], [2.0], [3.0]]), (-1, 1)).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert cad120.change(np.array([[1.0], [2.0], [4.0]]), 1).ravel().tolist() == [1, 3, 2]


def test_days_of_tapia():
    from experiments import tapia

    activities = """Preparing lunch,4/2/2003,11:00:00,11:30:00
7,8,7
Door,Drawer,Door
11:0:5,11:2:0,11:20:0
11:0:6,11:2:30,11:20:4
Washing hands,4/2/2003,11:19:0,11:21:0
7,9
Door,Tap
11:20:0,11:20:30
11:20:4,0:20:0
Dressing,3/30/2003,7:0:0,7:1:0
8
Drawer
7:0:30
7:0:40
"""
    switches = ["7,Kitchen,Door", "8,Bedroom,Drawer", "9,Kitchen,Tap"]
    hierarchy = [
        "Heading,Category,Subcategory,Code",
        "Domestic work,Preparing a meal,Preparing lunch,65",
        "Personal needs,Personal hygiene,Washing hands,35",
        "Personal needs,Personal hygiene,Dressing,30",
    ]
    first, second = tapia.read_days(activities.splitlines(), switches, hierarchy)
    assert (first.group, second.group) == ("2003-3-30", "2003-4-2")
    # the event that two activities list belongs to the one that began later
    assert second.columns[2] == ["Preparing lunch"] * 2 + ["Washing hands"] * 2
    assert second.columns[0] == ["Domestic work"] * 2 + ["Personal needs"] * 2
    assert [event.switch for event in second.events] == ["7", "8", "7", "9"]
    assert second.events[3].seconds == 13 * 3600 - 30  # off after midnight
    token = tapia.tokens(second, 1)[1]
    assert {"switch=8", "room=Bedroom", "hour=11", "switch[-1]=7", "switch[1]=7", "since=4", "on=3"} <= set(token)
    assert "since=begin" in tapia.tokens(second, 1)[0]
    assert [tapia.scale(s) for s in (0, 1, 4, 5, 3600)] == [0, 0, 1, 2, 6]
