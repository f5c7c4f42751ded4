"""Tagging words and finding names with a CRF and a SemiCRF, on data in this file.

Twelve sentences about travel, with labels word by word: who (person), where (place), everything else (o).
"""

import scansion as sc
from scansion.features import Gazetteer

SENTENCES = """\
Anna/person flies/o to/o Rio/place de/place Janeiro/place today/o
the/o train/o to/o York/place is/o late/o
Peter/person Smith/person left/o New/place York/place yesterday/o
we/o met/o Anna/person Berg/person in/o San/place Jose/place
Maria/person drives/o to/o Berlin/place today/o
the/o bus/o from/o Rio/place is/o late/o
Peter/person met/o Maria/person Lopez/person in/o York/place
yesterday/o Anna/person left/o Berlin/place
the/o flight/o from/o San/place Jose/place to/o New/place York/place is/o late/o
Maria/person and/o Peter/person live/o in/o Rio/place de/place Janeiro/place
we/o drive/o from/o Berlin/place to/o York/place today/o
Smith/person and/o Lopez/person left/o San/place Jose/place yesterday/o
"""
UNSEEN = "today Anna Lopez flies from Buenos Aires to Berlin".split()


def attributes(words: list[str], t: int) -> dict[str, object]:
    """What the model sees of word t: python-crfsuite's kind of items."""
    word = words[t]
    return {
        "w": word.lower(),
        "title": word.istitle(),
        "before": words[t - 1].lower() if t else "START",
        "after": words[t + 1].lower() if t + 1 < len(words) else "END",
    }


def featurize(words: list[str]) -> list[dict[str, object]]:
    return [attributes(words, t) for t in range(len(words))]


def read() -> tuple[list[list[str]], list[list[str]]]:
    """Words and labels of the sentences."""
    pairs = [[token.split("/") for token in line.split()] for line in SENTENCES.splitlines()]
    return [[word for word, _ in line] for line in pairs], [[label for _, label in line] for line in pairs]


def segments(labels: list[str]) -> list[tuple[int, int, str]]:
    """Names as segments of all their words, other words one by one."""
    found: list[tuple[int, int, str]] = []
    for t, label in enumerate(labels):
        if label != "o" and found and found[-1][2] == label and found[-1][1] == t:
            found[-1] = (found[-1][0], t + 1, label)
        else:
            found.append((t, t + 1, label))
    return found


def main() -> None:
    words, labels = read()
    X = [featurize(line) for line in words]
    x = featurize(UNSEEN)

    print("1. A CRF gives each word a label.")
    crf = sc.CRF(c2=0.1).fit(X, labels)
    print("   " + " ".join(f"{word}/{label}" for word, label in zip(UNSEEN, crf.predict_single(x), strict=True)))
    place = crf.predict_marginals_single(x)[UNSEEN.index("Aires")]["place"]
    print(f"   P(Aires is part of a place) = {place:.2f}")

    print("2. Half of the labels will do: None is an unknown label, a set is one of several.")
    rest = [[y if t % 2 else None for t, y in enumerate(row)] for row in labels[1:]]
    partial = sc.CRF(c2=0.1).fit(X, [labels[0], *rest])
    print(f"   {crf.score(X, labels):.0%} of the words right with all labels, {partial.score(X, labels):.0%} with half")

    print("3. What is known of a sentence changes the rest.")
    known: list[str | None] = [None] * len(UNSEEN)
    known[UNSEEN.index("Lopez")] = "place"
    held = crf.predict([x], constraints=[known])[0]
    print("   if Lopez is a place: " + " ".join(f"{word}/{y}" for word, y in zip(UNSEEN, held, strict=True)))

    print("4. A SemiCRF finds whole names, and can look them up.")
    cities = Gazetteer("city", ["buenos aires", "rio de janeiro", "new york", "san jose", "york"], lower=True)
    parts = {"before": "start", "after": "end"}  # the words around a name, not around each of its words
    semi = sc.SemiCRF(c2=0.1, segment_features=cities, attribute_parts=parts, length_features="bins")
    semi.fit(X, [segments(row) for row in labels])
    for start, stop, label in semi.predict_single(x):
        if label != "o":
            print(f"   {' '.join(UNSEEN[start:stop])}: {label}")


if __name__ == "__main__":
    main()
