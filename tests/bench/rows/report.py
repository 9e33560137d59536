"""Figures and their tables."""

import dataclasses
import json
import pathlib


@dataclasses.dataclass
class Figure:
    """One measured value. `goal` is what the value should reach, `ratio_goal` what value / baseline should; with both,
    one of them is enough."""

    row: str
    value: float
    unit: str
    baseline: float | None = None
    baseline_what: str = ""
    goal: float | None = None
    ratio_goal: float | None = None
    at_most: bool = False

    @property
    def ratio(self):
        return self.value / self.baseline if self.baseline else None

    @property
    def met(self):
        judged = [(value, goal) for value, goal in ((self.value, self.goal), (self.ratio, self.ratio_goal)) if goal is not None]
        if not judged:
            return None
        return any(value <= goal if self.at_most else value >= goal for value, goal in judged)

    def goal_text(self):
        sign = "<=" if self.at_most else ">="
        goals = [f"{name}{sign} {goal:g}" for name, goal in (("", self.goal), ("ratio ", self.ratio_goal)) if goal is not None]
        return " or ".join(goals) or "reported"

    def as_json(self):
        return {"row": self.row, "value": self.value, "unit": self.unit, "baseline": self.baseline,
                "baseline_what": self.baseline_what, "ratio": self.ratio, "goal": self.goal_text(), "met": self.met}


def write(figures, path):
    """The figures, as their JSON objects, into a file."""
    pathlib.Path(path).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def read(path):
    """Reads the file of write()."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def met_text(met):
    return {None: "-", True: "yes", False: "NO"}[met]


def table(figures):
    """The figures, as their JSON objects, one a line."""
    head = ("ROW", "VALUE", "UNIT", "BASELINE", "RATIO", "GOAL", "MET", "BASELINE IS")
    lines = [head] + [
        (f["row"], number(f["value"]), f["unit"], number(f["baseline"]), number(f["ratio"]), f["goal"],
         met_text(f["met"]), f["baseline_what"]) for f in figures]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown(figures):
    """The figures, as their JSON objects, as the table in docs/benchmarks.md."""
    lines = ["| row | value | baseline, in the same run | ratio | goal | met |", "|---|---|---|---|---|---|"]
    for f in figures:
        baseline = f"{number(f['baseline'])}: {f['baseline_what']}" if f["baseline"] is not None else "-"
        lines.append(f"| `{f['row']}` | {number(f['value'])} {f['unit']} | {baseline} | {number(f['ratio'])} "
                     f"| {f['goal']} | {met_text(f['met'])} |")
    return "\n".join(lines)


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
