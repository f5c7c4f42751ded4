"""A tour of lattices: exact answers about sequences, from arrays of scores: ``python examples/lattices.py``."""

import time

import numpy as np

import scansion as sc


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def tagged(words: list[str], labels: np.ndarray, names: str) -> str:
    return " ".join(f"{word}/{names[y]}" for word, y in zip(words, labels, strict=True))


SHADES = " .:-=+*#%@"


def heat_map(table: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """Print probabilities, the darker the larger: table (rows, columns)."""
    width = max(map(len, rows))
    print(" " * (width + 2) + "".join(f"{name:^12}" for name in columns))
    for name, row in zip(rows, table, strict=True):
        cells = (f"{SHADES[min(int(p * 10), 9)] * 4} {p:4.0%}".center(12) for p in row)
        print(f"  {name:{width}}" + "".join(cells))


# A sentence, and a pattern three labels long --------------------------------------------------------

WORDS = "Peter goes to Britain and France annually .".split()
NAMES = "POL"  # person, other, location
P, O, L = range(3)


def sentence() -> sc.ChainLattice:
    """The worked example of paper 001, Appendix B: each word likes one label, and "France" likes to end L O L."""
    patterns = [(P,), (O,), (L,), (L, O, L)]
    scores = np.zeros((len(WORDS), len(patterns)))
    for t, y in enumerate([P, O, O, L, O, L, O, O]):
        scores[t, y] = 1.0
    scores[WORDS.index("France"), 3] = 1.0
    return sc.ChainLattice.from_patterns(scores, patterns, n_labels=3)


def show_sentence() -> None:
    lattice = sentence()
    title("1. Which labels? A chain with one pattern of length three")
    best, score = lattice.viterbi()
    print(f"best of {3 ** len(WORDS):,} labellings: {tagged(WORDS, best, NAMES)}")
    print(
        f"score {score:g}, log Z {lattice.log_partition():.3f}, so its probability is only "
        f"{np.exp(lattice.log_probability(best)):.1%}."
    )
    print("\nThe next best:")
    for labels, value in lattice.kbest(4)[1:]:
        print(f"  {np.exp(value - lattice.log_partition()):5.1%}  {tagged(WORDS, labels, NAMES)}")

    title("2. How sure is each label? Marginals")
    marginals = lattice.marginals()
    heat_map(marginals.labels, WORDS, ["person", "other", "location"])
    print(f'\nP("Britain and France" reads L O L) = {marginals.patterns[5, 3]:.2f}')
    print(f"entropy: {lattice.entropy():.2f} nats of at most {len(WORDS) * np.log(3):.2f}")

    title("3. What if we know more? Constraints")
    known = np.full(len(WORDS), -1)
    known[WORDS.index("France")] = P
    held = lattice.constrain(labels=known)
    print("Suppose that somebody tells us that France is a person here (Anatole?).")
    print(
        f"The model gave that {np.exp(held.log_partition() - lattice.log_partition()):.0%}. "
        "What changes for its neighbours:"
    )
    heat_map(held.marginals().labels[3:6], WORDS[3:6], ["person", "other", "location"])
    print("Britain and `and` lose what the pattern L O L had given them.")

    title("4. What does the model imagine? Samples")
    for labels in lattice.sample(3, rng=7):
        print(f"  {tagged(WORDS, labels, NAMES)}")
    drawn = lattice.sample(20_000, rng=8)
    share = np.mean((drawn[:, 3] == L) & (drawn[:, 4] == O) & (drawn[:, 5] == L))
    print(
        f"In 20,000 samples, {share:.1%} read L O L at Britain and France; "
        f"exactly, it is {marginals.patterns[5, 3]:.1%}."
    )


# Days, cut into activities --------------------------------------------------------------------------

ACTIVITIES = ["sleep", "work", "rest"]
MARKS = "zW."
LEVEL = np.array([0.0, 2.0, 1.0])  # movement that a sensor sees in each activity, give or take NOISE
NOISE = 0.8
HOURS = np.array([7.0, 4.0, 2.0])  # usual length, give or take SPREAD
SPREAD = np.array([1.0, 1.0, 0.5])
LONGEST = 9


def simulated_days(rng: np.random.Generator, n_days: int) -> np.ndarray:
    """(24 n_days,) activity of each hour: sleep, and then work and rest in turn."""
    hours: list[int] = []
    while len(hours) < 24 * n_days:
        for activity in (0, 2, 1, 2, 1, 2):
            length = round(rng.normal(HOURS[activity], SPREAD[activity]))
            hours += [activity] * min(max(length, 1), LONGEST)
    return np.array(hours[: 24 * n_days])


def activity_lattice(seen: np.ndarray) -> sc.SegmentLattice:
    """What the sensor saw, (T,), scored hour by hour inside segments; lengths; which activity follows which."""
    patterns = [(0,), (1,), (2,), *((a, b) for a in range(3) for b in range(3))]
    inside = np.zeros((len(seen), len(patterns)))
    inside[:, :3] = -0.5 * ((seen[:, None] - LEVEL) / NOISE) ** 2
    start = np.zeros(len(patterns))
    start[[3, 7, 11]] = -np.inf  # two segments of one activity in a row would be one
    length = np.zeros((LONGEST, len(patterns)))
    length[:, :3] = -0.5 * ((np.arange(1, LONGEST + 1)[:, None] - HOURS) / SPREAD) ** 2 - np.log(SPREAD)
    return sc.SegmentLattice.from_parts(
        patterns, n_labels=3, max_length=LONGEST, start=start, inside=inside, length=length
    )


def by_hour(segments: list[sc.Segment]) -> np.ndarray:
    return np.concatenate([np.full(s.stop - s.start, s.label) for s in segments])


def marks(labels: np.ndarray) -> str:
    return "".join(MARKS[y] for y in labels)


def show_segments() -> None:
    title("5. When does something begin and end? Segments with durations")
    print("A sensor counts movements. Sleep lasts about 7 hours, work 4, rest 2. Two days:\n")
    rng = np.random.default_rng(4)
    truth = simulated_days(rng, 200)
    seen = LEVEL[truth] + NOISE * rng.normal(size=len(truth))
    alone = np.abs(seen[:, None] - LEVEL).argmin(axis=1)
    found = by_hour(activity_lattice(seen).viterbi()[0])
    print(f"  truth           {marks(truth[:48])}")
    print(f"  hour by hour    {marks(alone[:48])}")
    print(f"  with durations  {marks(found[:48])}")
    print(f"\nOver 200 days, hour by hour gets {np.mean(alone == truth):.0%} of the hours right, ", end="")
    print(f"with durations {np.mean(found == truth):.0%}.")

    day = activity_lattice(seen[:48])
    best, _ = day.viterbi()
    ends = day.marginals().boundaries
    print("\nWhere does an activity end? The darker, the more probable:")
    print(f"  best            {marks(by_hour(best))}")
    print(f"  P(end)          {''.join(SHADES[min(int(p * 10), 9)] for p in ends)}")

    is_end = np.zeros(48, dtype=bool)
    is_end[[s.stop - 1 for s in best]] = True
    doubtful = int(np.argmax(np.where(is_end, 0.0, ends)))
    boundaries = np.full(48, -1)
    boundaries[doubtful] = 1
    held = day.constrain(boundaries=boundaries)
    print(f"\nThe best answer has no end at hour {doubtful}, though that had {ends[doubtful]:.0%}. If we know of one:")
    print(f"  best            {marks(by_hour(held.viterbi()[0]))}")
    print(f"                  {' ' * doubtful}^")


# Size ----------------------------------------------------------------------------------------------


def show_size() -> None:
    title("6. How large may it be?")
    rng = np.random.default_rng(5)
    n_sequences, n_times, n_labels = 1000, 100, 20
    batch = sc.ChainBatch(
        rng.normal(size=(n_sequences * n_times, n_labels)),
        np.arange(n_sequences + 1) * n_times,
        rng.normal(size=(n_labels, n_labels)),
    )
    begin = time.perf_counter()
    batch.marginals()
    seconds = time.perf_counter() - begin
    print(
        f"{n_sequences:,} sequences of {n_times} positions, {n_labels} labels: "
        f"all marginals in {1e3 * seconds:.0f} ms on one thread."
    )
    chain = sc.ChainLattice(rng.normal(size=(100_000, 5)) * 1e4, rng.normal(size=(5, 5)))
    begin = time.perf_counter()
    log_z = chain.log_partition()
    print(
        f"One sequence of 100,000 positions with scores around 10,000: log Z = {log_z:.4e}, "
        f"{1e3 * (time.perf_counter() - begin):.0f} ms."
    )


def main() -> None:
    print("scansion: exact inference on sequences. Six short stories.")
    show_sentence()
    show_segments()
    show_size()
    title("What to try next")
    print("- change the scores in examples/lattices.py and run it again")
    print("- read docs/concepts/chain.md and docs/concepts/segment.md: shapes and equations on one page each")
    print("- make test, or make bench to compare the kernels with other libraries on your machine")


if __name__ == "__main__":
    main()
