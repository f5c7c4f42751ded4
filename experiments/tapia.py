"""MIT-Tapia: activities of the home in a hierarchy of three levels, from switches on doors and drawers.

The nearest public stand-in for the activities of papers 000 and 003 in which one sequence has many activities: two
people, each about two weeks in a flat with some 75 switches. An activity ("preparing lunch") belongs to a category
("preparing a meal"), a category to a heading ("domestic work"). The data has the events of switches by activity, none
outside activities; so a day is the sequence of its events in the order of time, each with the activity that it is
listed under (of two activities, that which began later). To be found is which of them belong together, and to what.

An event has: its switch, the object and the room it is on, the hour, how long it was on, how much time has passed since
the event before (also where one segment ends and the next begins), and the switches around it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.contest import Contest, Hierarchical, cascade, crf, product, semi_crf
from experiments.data import open_text
from experiments.report import Figure, Options, Report

TITLE = "MIT-Tapia: headings, categories and activities from switches, one day left out at a time"
LEVELS = ("heading", "category", "activity")
SUBJECTS = (1, 2)
STRENGTHS: tuple[Any, ...] = (1.0, 10.0, 100.0)
BY_LEVEL = (1.0, 10.0, {"heading": 100.0, "category": 10.0, "activity": 1.0})
EXPLAINED = (
    "Each day is tested once by models of the other days of its subject; the window of switches and the penalty c2 are "
    "chosen on these, by training on two thirds of them and testing on the other third. Events are what is counted. "
    "CRF, SemiCRF and cascade are three models, one a level, CRFs with the time since the last event at transitions; "
    "in the cascade each sees the label probabilities of the other levels by flat models (on training days: by models "
    "that did not see the third that the day is in), c2 being that of the flat model. product chain: the label of the "
    "lowest level decides those above it, so that it is a CRF of activities that answers for all levels. HSCRF: "
    "activities with gamma durations, with c2 of HSCRF, steps: all levels without durations."
)


@dataclass(frozen=True)
class Event:
    """A switch that went on at `start` (seconds of the day) and off `seconds` later."""

    start: int
    seconds: int
    switch: str
    thing: str
    room: str


@dataclass(frozen=True)
class Day:
    """The events of a day, and their labels at each level."""

    group: str  # the date
    events: list[Event]
    columns: tuple[list[str], ...]


def clock(text: str) -> int:
    """Seconds of the day."""
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def read_days(activities: Iterable[str], switches: Iterable[str], hierarchy: Iterable[str]) -> list[Day]:
    """Days in the order of the calendar, from the lines of the three files of a subject."""
    rooms = {row[0].strip(): row[1].strip() for row in csv.reader(switches) if len(row) >= 3}
    above = {row[2].strip(): (row[0].strip(), row[1].strip()) for row in csv.reader(hierarchy) if len(row) >= 3}
    rows = [[cell.strip() for cell in row] for row in csv.reader(activities) if any(cell.strip() for cell in row)]
    days: dict[tuple[int, ...], dict[tuple[int, str], tuple[int, Event, str]]] = {}
    for i in range(0, len(rows), 5):
        (label, date, begin, _), *events = rows[i : i + 5]
        month, day, year = (int(part) for part in date.split("/"))
        listed = days.setdefault((year, month, day), {})
        for switch, thing, on, off in zip(*events, strict=True):
            start, stop = clock(on), clock(off)
            event = Event(start, stop - start if stop >= start else stop - start + 86_400, switch, thing, rooms[switch])
            if (start, switch) not in listed or clock(begin) > listed[start, switch][0]:
                listed[start, switch] = (clock(begin), event, label)
    result = []
    for date_, listed in sorted(days.items()):
        found = [listed[key] for key in sorted(listed)]
        labels = [label for _, _, label in found]
        columns = ([above[a][0] for a in labels], [above[a][1] for a in labels], labels)
        result.append(Day("-".join(map(str, date_)), [event for _, event, _ in found], columns))
    return result


def read(subject: int) -> list[Day]:
    names = ("activities_data", "sensors", "Activities")
    files = [open_text(f"mit-tapia/subject{subject}/{name}.csv", encoding="latin-1") for name in names]
    try:
        return read_days(*files)
    finally:
        for file in files:
            file.close()


def scale(seconds: float) -> int:
    """0 up to a second, and one more for each factor of four."""
    return math.ceil(math.log(max(seconds, 1.0), 4.0))


def tokens(day: Day, width: int) -> list[dict[str, float]]:
    """Attributes of the events, with the switches of `width` events on either side."""
    found = []
    for t, event in enumerate(day.events):
        before = event.start - day.events[t - 1].start if t else None
        names = [
            "bias",
            f"switch={event.switch}",
            f"thing={event.thing}",
            f"room={event.room}",
            f"hour={event.start // 3600}",
            f"part of day={event.start // (4 * 3600)}",
            f"on={scale(event.seconds)}",
            f"since={'begin' if before is None else scale(before)}",
        ]
        for offset in range(-width, width + 1):
            if offset and 0 <= t + offset < len(day.events):
                other = day.events[t + offset]
                names += [f"switch[{offset}]={other.switch}", f"room[{offset}]={other.room}"]
        found.append(dict.fromkeys(names, 1.0))
    return found


def window(width: int) -> Callable[[Sequence[Day]], Callable[[Day], list[dict[str, float]]]]:
    return lambda train: lambda day: tokens(day, width)


FEATURES = {f"switches of {width} events on either side": window(width) for width in (1, 2, 4)}
AT_CHANGES = {"attribute_orders": {"since": (0, 1)}}
AT_STARTS = {"attribute_parts": {"since": ("inside", "start")}}


def hierarchical(durations: bool) -> Callable[..., Hierarchical]:
    below: dict[str, Any] = {"max_length": {**dict.fromkeys(LEVELS, "free"), "activity": None if durations else "free"}}
    if durations:
        below["length_features"] = {"activity": ("length", "log")}
    below["attribute_parts"] = dict.fromkeys(LEVELS, {"": "inside", "since": ("inside", "start")})
    return lambda **parameters: Hierarchical(LEVELS, **below, **parameters)


MODELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "CRF": tuple(crf(d, **AT_CHANGES) for d in range(3)),
    "SemiCRF": tuple(semi_crf(d, **AT_STARTS) for d in range(3)),
    "cascade": tuple(cascade(d, **AT_CHANGES) for d in range(3)),
    "product chain": (lambda **parameters: product(**AT_CHANGES, **parameters),),
    "HSCRF, steps": (hierarchical(False),),
    "HSCRF": (hierarchical(True),),
}


def contest(days: Sequence[Day]) -> Contest:
    nested = [{"c2": c2} for c2 in BY_LEVEL]
    candidates: dict[str, Any] = {"": [{"c2": c2} for c2 in STRENGTHS], "HSCRF, steps": nested}
    candidates |= {"cascade": "CRF", "HSCRF": "HSCRF, steps"}
    return Contest(LEVELS, days, FEATURES, MODELS, candidates, inner=3, choices=1)


def run(options: Options) -> Report:
    report = Report("tapia", TITLE, notes=[EXPLAINED])
    for subject in SUBJECTS:
        options.say(f"  subject {subject}:")
        found = contest(read(subject))
        found.run(options)
        what = f"days of subject {subject}"
        report.tables += [*found.tables(what), found.differences("HSCRF", what)]
        report.figures.append(
            Figure(
                f"subject{subject}",
                f"Accuracy by marginal decoding on each day of subject {subject} (dots) and its mean (bars)",
                found.picture,
            )
        )
        report.results[f"subject {subject}"] = found.results
        report.notes.append(f"Subject {subject}: {found.converged()[0].lower()}{found.converged()[1:]}")
    return report
