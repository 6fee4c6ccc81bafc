#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether clients keep lock/FORMAT.md, by peer.py: this release; each release that is kept, whose
failures are listed in its file "fails"; and example.py. Then whether each check of peer.py can fail:
each fault of faults.txt has to be found. Arguments: "this", "example.py", the name of a kept
release, "ends" (a program that ends fails its checks), "faults"; none: all.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True  # not into the tree
import lab
import peer

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = HERE + "/example.py"


def clients():
    """(name, command, the checks that it is known to fail)"""
    yield "this", [lab.BUILD + "/compat/this/client"], set()
    yield "example.py", [sys.executable, EXAMPLE], set()
    for release in lab.kept_releases():
        yield release, [lab.BUILD + "/compat/" + release + "/client"], lab.fails(release)


def judge(name, words, known, port):
    results = peer.run(words, port, list(peer.CHECKS))
    good = True
    for check, (verdict, why) in results.items():
        if verdict == "skip" and name in lab.kept_releases():
            print("# %s has nothing to show for %s: %s" % (name, check, why))
            continue
        expected = verdict == "not ok" if check in known else verdict != "not ok"
        if check in known:
            why = "fails, as listed" if expected else "does not fail, but is listed"
            verdict = "ok" if expected else "not ok"
        print("%s %s keeps %s%s" % (verdict, name, check, ": " + why if why else ""))
        good = good and expected
    sys.stdout.flush()
    return good


def faults():
    with open(HERE + "/faults.txt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("|", 1)


def plant(number, command):
    """The name of a copy of example.py with the fault; None when the command changes nothing."""
    folder = lab.BUILD + "/compat/faulty"
    os.makedirs(folder, exist_ok=True)
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    changed = subprocess.run(["sed", command], input=text, stdout=subprocess.PIPE, check=True,
                             encoding="utf-8").stdout
    name = "%s/%d.py" % (folder, number)
    with open(name, "w", encoding="utf-8") as file:
        file.write("import sys\nsys.path.insert(0, %r)  # of lab.py\n" % HERE + changed)
    return name if changed != text else None


def find_faults(port):
    planted = [(number, *fault) for number, fault in enumerate(faults())]
    good = True

    def find(fault):
        number, check, command = fault
        program = plant(number, command)
        if program is None:
            return "not ok", "it changes nothing"
        verdict, why = peer.judge(check, port, [sys.executable, program], "%s.%d" % (check, number))
        return {"not ok": "ok", "skip": "skip"}.get(verdict, "not ok"), why or "it is not found"

    for fault, (verdict, why) in zip(planted, peer.side_by_side(find, planted)):
        print("%s fault %s: %s\n# %s" % (verdict, fault[1], fault[2], why))
        good = good and verdict != "not ok"
    missing = set(peer.CHECKS) - {check for check, _ in faults()}
    print("%s each check has a fault %s" % ("not ok" if missing else "ok", " ".join(missing)))
    return good and not missing


def judge_one_that_ends(port):
    """A program that ends in the middle fails its checks, and those of others go on."""
    results = peer.run(["sh", "-c", "echo ready"], port, ["ids", "hold", "lease", "renewal", "name_in_braces"])
    good = all(verdict == "not ok" for verdict, _ in results.values())
    print("%s one that ends fails: %s" % ("ok" if good else "not ok", results))
    return good


def main(only):
    port = lab.Server().port
    results = [judge(name, words, known, port) for name, words, known in clients()
               if not only or name in only]
    if not only or "ends" in only:
        results.append(judge_one_that_ends(port))
    if not only or "faults" in only:
        results.append(find_faults(port))
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
