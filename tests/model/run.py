#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Explores the model: all states of each run, and of each planted fault until that is found.

    run.py [NAME]            the runs of runs.txt and the faults of faults.txt whose names contain NAME
    run.py --large [NAME]    the large ones of both instead: minutes, and gigabytes, each
    run.py --trace NAME      how that run or fault breaks a promise, a step at a time

JOBS: side by side (default: 2). A run that is not complete says so, and fails.
"""
import concurrent.futures
import os
import re
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")), "model")
DEFAULTS = {
    "N": 2, "ACQUIRES0": 1, "ACQUIRES": 1, "WAITER": 3, "CLAIM": 3, "BEAT": 1, "RESPONSE": 1, "LEASE": 4,
    "LATE": 1, "LEFT": 1,
}
ZERO = "SHORT RENEWS TRIES REENTRIES CANCELS BREAKS OFFLINE CRASHES FREEZES VOIDS STOPS SYNCED FAILOVERS ANY_ORDER"


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def models_in(folder):
    """The text of each file of the model there."""
    return {name: text_of(folder, name) for name in os.listdir(folder) if name.endswith(".pml")}


def lines(name, fields):
    """The lines of a list, each as that many fields; the last one may contain what separates them."""
    for line in text_of(HERE, name).split("\n"):
        if line and not line.startswith("#"):
            parts = [part.strip() for part in line.split("|", fields - 1)]
            assert len(parts) == fields, f"{name}: {line}"
            yield parts


class Run:
    """A model with its options; sed: what takes a rule out of it, or None."""

    def __init__(self, name, model, options, sed=None, place="", breaks=""):
        self.name, self.model, self.sed, self.place, self.breaks = name, model, sed, place, breaks
        self.large = name.startswith("large: ")
        self.folder = os.path.join(BUILD, re.sub(r"[^\w]+", "_", ("fault " if sed else "run ") + name))
        values = dict(DEFAULTS, **{name: 0 for name in ZERO.split()})
        for option in options.split():
            key, _, value = option.removeprefix("-D").partition("=")
            values[key] = value
        self.live, self.depth_first = "LIVE" in values, values.pop("DEPTH_FIRST", None) is not None
        self.large |= values.pop("LARGE", None) is not None
        self.long = self.large or values.pop("LONG", None) is not None  # worth to be compiled well
        self.defines = [f"-D{key}={value}" for key, value in values.items()]
        self.said = self.states = self.depth = self.memory = ""

    def shell(self, *command, check=True):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[:300]}")
        return done.stdout + done.stderr

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        models = models_in(HERE)
        for name in models:
            shutil.copy(os.path.join(HERE, name), self.folder)
        if self.sed:
            self.shell("sed", "-i", self.sed, *models)
            if models_in(self.folder) == models:
                raise RuntimeError("the fault changes nothing")

    def explore(self):
        """Stores what was found in `said`: "" if no promise was broken."""
        self.prepare()
        self.shell("spin", "-a", *self.defines, self.model)
        how = ["-DHC4"] if self.live else ["-DHC4", "-DSAFETY"] + (["-DBFS"] if self.sed and not self.depth_first else [])
        compiler = ["gcc", "-O2" if self.large else "-O1"] if self.long or not shutil.which("tcc") else ["tcc"]
        self.shell(*compiler, "-w", *how, "-DNOREDUCE", f"-DMEMLIM={8000 if self.large else 2500}", "-o", "pan", "pan.c")
        out = self.shell("./pan", "-m1000000", "-w26" if self.large else "-w22", *(["-a"] if self.live else []), check=False)
        match = lambda pattern: (re.search(pattern, out) or [None, "0"])[1]
        self.states, self.depth = match(r"(\d\S*) states, stored"), match(r"depth reached (\d+)")
        self.memory = match(r"([\d.]+)\s+total actual memory")
        found = re.search(r"pan:\d+: (.*)", out)
        self.said = found[1] if found else ""
        if not found and (re.search(r"not completed|out of memory|max search depth too small", out) or "errors: 0" not in out):
            raise RuntimeError("not complete: " + out[-300:].replace("\n", " "))

    def steps(self):
        """The steps of the counterexample: (process, the first line of the step, what it has changed)."""
        trail = [name for name in os.listdir(self.folder) if name.endswith(".trail")][0]
        out = self.shell("spin", "-k", trail, "-t", "-p", "-g", *self.defines, self.model, check=False)
        sources = {name: text.split("\n") for name, text in models_in(self.folder).items()}
        steps, state, first = [], {}, {}
        where = re.compile(r"^\s*\d+:\s+proc\s+(\d+) \((\w+)[^)]*\) (?:.*/)?([\w.]+):(\d+) \(state (\d+)\)\s*(?:\[(.*)\])?")
        for line in out.split("\n"):
            at = where.match(line)
            if at:  # each step begins at the first state of its `atomic`
                key = at.group(1, 3, 4)
                first[key] = min(int(at[5]), first.get(key, 9999))
        for line in out.split("\n"):
            at = where.match(line)
            if at:
                text = sources[at[3]][int(at[4]) - 1].strip()
                if re.match(r":: (atomic|d_step)", text) and int(at[5]) == first[at.group(1, 3, 4)]:
                    steps.append((f"{at[2]}[{at[1]}]", f"{at[3]}:{at[4]} {text[3:]}", {}))
                if steps and at[6] and re.match(r"handle\[\w+\]\.\w+ = ", at[6]):
                    key, value = at[6].split(" = ", 1)
                    steps[-1][2][key.split(".")[1]] = value
            at = re.match(r"^\s+(?:queue \d+ \(([^)]*)\): (.*)|([a-z_]+(?:\[\d\])?) = (\S+))$", line)
            if at and steps:
                key, value = (at[1], at[2]) if at[1] else (at[3], at[4])
                if state.get(key) != value:
                    state[key] = steps[-1][2][key] = value
        return steps, out

    def promise(self, out):
        """Which promise the counterexample breaks."""
        names = re.findall(r"\((one_holder|nothing_left|counted|\w+_promise):\d+\) .*\[assert\(0\)\]", out)
        if self.live:
            return "live"
        if names:
            return names[-1]
        at = re.findall(r"spin: (?:\S*/)?([\w.]+):(\d+), Error: assertion violated", out)
        if at:
            line = text_of(self.folder, at[-1][0]).split("\n")[int(at[-1][1]) - 1]
            promise = re.search(r"PROMISE (\w+)", line)
            if promise:
                return promise[1]
            own = text_of(self.folder, self.model)  # a macro of the model's own
            return (re.search(r"PROMISE (\w+)", own) or [None, "?"])[1]
        return "?"

    def broke(self):
        """As faults.txt has it: the promise, and how many steps and ticks the counterexample has."""
        steps, out = self.steps()
        ticks = sum(1 for who, _, _ in steps if who.startswith("clock"))
        return f"{self.promise(out)} {len(steps)}, {ticks}"


def everything():
    runs = [Run(name, model, options) for name, model, options, _ in lines("runs.txt", 4)]
    faults = [Run(name, model, options, sed, place, breaks) for name, model, options, place, _, breaks, sed in lines("faults.txt", 7)]
    return runs, faults


def judge(run):
    """Returns whether the run is as it has to be, and what to say of it."""
    try:
        run.explore()
    except RuntimeError as error:
        return False, f"{run.name}: {error}"
    figures = f"{run.states} states, depth {run.depth}, {run.memory} MB"
    if not run.sed:
        return run.said == "", f"{run.name}: {figures}" + (f": {run.said}" if run.said else "")
    good = "assertion violated" in run.said or "acceptance cycle" in run.said
    if not good:
        return False, f"fault: {run.name}: {run.said or 'not found'}, {figures}"
    broke = run.broke()
    return broke == run.breaks, f"fault: {run.name}: {broke} steps, ticks" + ("" if broke == run.breaks else f"; faults.txt has {run.breaks}")


def check_rules(faults):
    """Each rule that the model names has a planted fault, and each fault a rule; and its place is in the code."""
    named = set()
    for text in models_in(HERE).values():
        for comment in re.findall(r"/\*.*?\*/", text, re.S):
            named.update(re.findall(r"\[([a-z]+(?:-[a-z]+)*)\]", comment))
    named.discard("in-brackets")
    faults = [fault for fault in faults if re.fullmatch(r"[a-z-]+", fault.name)]  # others: what is documented, and has to be found
    have = {fault.name for fault in faults}
    for rule in sorted(named ^ have):
        yield f"rule {rule}: " + ("has no planted fault" if rule in named else "is not in the model")
    for fault in faults:
        for place in re.split(r", (?=\w+\.\w+:)", fault.place):
            file, _, function = place.partition(":")
            paths = [os.path.join(TOP, "lock", file), os.path.join(TOP, "lock", "scripts", file)]
            texts = [text_of(path) for path in paths if os.path.exists(path)]
            if not texts or function not in texts[0]:
                yield f"rule {fault.name}: {place} is not in the code"


def main():
    words = sys.argv[1:]
    option = words.pop(0) if words and words[0].startswith("--") else ""
    only = " ".join(words)
    runs, faults = everything()
    if option == "--trace":
        run = next(run for run in runs + faults if run.name == only)
        run.explore()
        print(run.said or "no promise is broken")
        for number, (who, what, changes) in enumerate(run.steps()[0] if run.said else [], 1):
            print(f"{number:4} {who:14} {what[:90]}\n        " + "  ".join(f"{key}={value}" for key, value in changes.items()))
        return 0
    large = option == "--large"
    chosen = [run for run in runs + faults if run.large == large and only in run.name]
    bad = 0
    for fault in [] if only or large else check_rules(faults):
        print(f"not ok {fault}")
        bad += 1
    jobs = 1 if large else int(os.environ.get("JOBS", "2"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for run, (good, text) in zip(chosen, pool.map(judge, chosen)):
            print(("ok " if good else "not ok ") + text, flush=True)
            bad += not good
            if good:
                shutil.rmtree(run.folder, ignore_errors=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"# {len(chosen)} explored, {bad} not as they have to be, {spent.ru_utime + spent.ru_stime:.0f} s of a processor")
    return 1 if bad or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
