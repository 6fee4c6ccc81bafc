#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the public headers of a release against those of an earlier one: tests/release/abi.py OLD NEW
[LIBRARY], two folders with resp/, port/ and lock/. Prints what differs, and fails if
lock/STABILITY.md forbids any of it between these two versions, or if NEW's LIBRARY lacks a function
that its headers declare.

A file that includes the public headers, and defines each function that they declare, is compiled
for the debugger; abidw (libabigail) reads from it what a program that includes them gets to know:
functions, types, members, enumerators. The preprocessor tells the macros. abidiff would not do as
the judge: the library is static, so what is private may change, and it cannot be told that the
rest of a struct is. Private is what the earlier release's headers call so: a file in its opening
comment, a struct in the comment above it, and members by "the rest is private", as for the pages
(tests/release/docs_filter.awk). A header whose opening says that it may change in a minor release is not compared.

What the command promises is read from its manual, where both releases have one: options, forms of a
URL, variables, exit statuses, and the names in its JSON and metrics.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# What a program includes; they include the others.
OPTIONS = ["lock/fairlock_" + name + ".h"
           for name in ("follow", "log", "credentials", "keep", "share", "abandon", "operate", "several")]
ROOTS = ["lock/fairlock.h", *OPTIONS, "lock/driver.h", "port/posix/port_posix.h", "port/openssl/port_openssl.h"]
# What candidates of 1.0.0 may lack.
SINCE_RC3 = ["lock/driver.h", *OPTIONS]
MANUAL = "boards/fairlock/fairlock.1"
FOLDERS = ["resp", "port", "port/posix", "port/openssl", "lock"]

# Macros that may change: the version, and room that the program provides when it is compiled anew.
MAY_CHANGE = re.compile(r"_VERSION|^PORT_RELEASE$|_SIZE$|_OVERHEAD$|_SUFFIX$")
MAY_GROW = re.compile(r"_MAX(_MS)?$")
MAY_FALL = re.compile(r"_MIN(_MS)?$")


def eased(name, old, new):
    """Whether a macro is a limit that is wider now."""
    numbers = [re.fullmatch(r"(0x[0-9a-f]+|\d+)U?", value) for value in (old, new)]
    if None in numbers:
        return False
    before, after = (int(number.group(1), 0) for number in numbers)
    return bool(MAY_GROW.search(name) if after > before else MAY_FALL.search(name))


# What names have at their end so that objects of different releases do not link: port.h.
NAMED = re.compile(r"_\d+_\d+_\d+(_rc\d+)?(_posix_threads)?$")


def plain(name):
    return NAMED.sub("", name)


# members: (name, type) of those that are not private. size in bytes.
Struct = collections.namedtuple("Struct", "private members size")


def run(*words):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise SystemExit(f"abi: {words[0]} fails")
    return done.stdout


class Header:
    """The text of a header, for what it says of itself."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        licensed = "SPDX-License-Identifier" in self.lines[0]  # the comment of the header is below
        opening = "\n".join(self.lines[licensed:]).split("*/")[0]
        self.private = bool(re.search(r"\bprivate\b", opening, re.IGNORECASE))
        words = " ".join(opening.replace("*", " ").split())
        self.promised = "may change in a minor release" not in words

    def calls_private(self, line):
        """Whether the comment above this line, the first of a struct, has the word."""
        above = []
        for text in reversed(self.lines[: line - 1]):
            if not above and not text.endswith("*/"):
                break
            above.append(text)
            if text.startswith("/*"):
                break
        return bool(re.search(r"\bprivate\b", " ".join(above), re.IGNORECASE))

    def rest_begins(self, line):
        """The line from which on the members of the struct that begins here are private."""
        for number, text in enumerate(self.lines[line:], line + 1):
            if text.endswith("/* the rest is private */"):
                return number
            if text.endswith("all the rest is private */"):
                return number + 2  # all but the member below
            if text.startswith("}"):
                break
        return len(self.lines) + 1


def read_manual(path):
    """The names that a user of the command relies on."""
    names = set()
    section = item = previous = ""
    with open(path, encoding="utf-8") as file:
        for line in file.read().replace("\\-", "-").split("\n"):
            names.update("variable " + name for name in re.findall(r"\bFAIRLOCK_[A-Z_]+", line))
            if line.startswith((".SH", ".SS")):
                section, item = line[4:], ""
            elif previous == ".TP":
                ours = section.startswith(("fairlock ", "Options "))
                options = re.findall(r"(?<![\w-])(?:--?[A-Za-z][a-z-]*|-0)", line) if ours else []
                names.update(f"option {option} ({section})" for option in options)
                names.update(f"{section.lower()} {number}" for number in re.findall(r"^\.B (\d+)$", line))
                names.update("URL " + form for form in re.findall(r"^\.BR ([a-z+]+://)", line))
                item = options[-1] if options else ""
            elif re.match(r"\.(BR |B \S+$)", line) and item in ("--json", "--metrics", "--metrics-file", "--metrics-locks"):
                bold = [word.strip('"') for word in re.findall(r'"[^"]*"?|[^" ]+', line.split(" ", 1)[1])[::2]]
                names.update(f"{word} of {item} ({section})" for word in bold if re.fullmatch(r"[a-z_]+", word))
            previous = line
    return dict.fromkeys(names, "")


class Release:
    """What the public headers below a folder declare."""

    def __init__(self, folder):
        self.folder = folder
        options = ["-std=c11"] + ["-I" + os.path.join(folder, name) for name in FOLDERS]
        with tempfile.TemporaryDirectory() as temporary:
            file = os.path.join(temporary, "headers.c")
            self._write(file, [])
            self._read_macros(run("gcc", "-E", "-dD", *options, file))
            declared = os.path.join(temporary, "declared")
            run("gcc", *options, "-aux-info", declared, "-c", "-o", os.devnull, file)
            with open(declared, encoding="utf-8") as lines:
                self._write(file, self._definitions(lines))
            built = os.path.join(temporary, "headers.so")
            run("gcc", *options, "-std=gnu2x", "-w", "-g", "-O0", "-fPIC", "-shared", "-nostdlib",
                "-fno-eliminate-unused-debug-types", "-o", built, file)
            tree = run("abidw", "--load-all-types", "--no-corpus-path", "--no-comp-dir-path", built)
        self._read(xml.etree.ElementTree.fromstring(tree))
        manual = os.path.join(folder, MANUAL)
        self.manual = read_manual(manual) if os.path.exists(manual) else None

    def _write(self, file, definitions):
        with open(file, "w", encoding="utf-8") as out:
            for root in ROOTS:
                if not os.path.exists(os.path.join(self.folder, root)):
                    if root in SINCE_RC3:
                        continue
                    raise SystemExit(f"abi: no {root} in {self.folder}")
                out.write(f'#include "{os.path.basename(root)}"\n')
            out.writelines(definitions)

    def _ours(self, path):
        return path.startswith(self.folder + "/")

    def _definitions(self, lines):
        """Lines of -aux-info, "/* FILE:LINE:NC */ extern int NAME (struct x *);", as definitions."""
        self.declared = collections.defaultdict(list)
        for line in lines:
            found = re.match(r"/\* (.*?):\d+:\w+ \*/ (?:extern )?(.*?(\w+) \(.*);", line)
            if found and self._ours(found.group(1)):
                self.declared[found.group(1)].append(plain(found.group(3)))
                yield found.group(2) + " { for (;;); }\n"

    def functions_of(self, header):
        return {name for path, names in self.declared.items() if os.path.basename(path) == header for name in names}

    def _read_macros(self, text):
        self.macros, self.parameters = {}, {}
        self.headers = {}
        path = ""
        for line in text.split("\n"):
            marker = re.match(r'# \d+ "(.*?)"', line)
            if marker:
                path = marker.group(1)
                if self._ours(path) and path not in self.headers:
                    self.headers[path] = Header(path)
                continue
            macro = re.match(r"#define (\w+)(\(.*?\))?\s*(.*)", line)
            if macro and self._ours(path) and not self.headers[path].private and self.headers[path].promised:
                name, parameters, value = macro.groups()
                if not name.endswith("_H") and not value.startswith(("PORT_NAMED(", "PORT_RELEASED(")):
                    self.macros[name] = " ".join(value.split())
                    self.parameters[name] = parameters or "none"
        self.version = self.macros["FAIRLOCK_VERSION"].strip('"')

    def _read(self, corpus):
        self.types = {node.get("id"): node for node in corpus.iter() if node.get("id")}
        self.functions, self.structs, self.enums, self.typedefs = {}, {}, {}, {}
        self.free = {name for path, names in self.declared.items()
                     if path in self.headers and not self.headers[path].promised for name in names}
        for node in corpus.iter():
            header = self.headers.get(node.get("filepath"))
            if node.tag == "function-decl" and node.get("elf-symbol-id"):
                if plain(node.get("name")) not in self.free:
                    self.functions[plain(node.get("name"))] = self._function(node)
            elif header is None or not header.promised or node.get("is-declaration-only"):
                continue
            elif node.tag in ("class-decl", "union-decl"):
                self.structs[node.get("name")] = self._struct(node, header)
            elif node.tag == "enum-decl":
                self.enums[node.get("name")] = {
                    entry.get("name"): int(entry.get("value")) for entry in node.findall("enumerator")}
            elif node.tag == "typedef-decl":
                self.typedefs[node.get("name")] = self._spell(node.get("type-id"))

    def _struct(self, node, header):
        line = int(node.get("line"))
        private = header.private or header.calls_private(line)
        rest = 0 if private else header.rest_begins(line)
        members = [member.find("var-decl") for member in node.findall("data-member")]
        return Struct(private,
                      [(member.get("name"), self._spell(member.get("type-id")))
                       for member in members if int(member.get("line")) < rest],
                      int(node.get("size-in-bits") or 0) // 8)

    def _function(self, node):
        parameters = [self._spell(entry.get("type-id")) if entry.get("type-id") else "..."
                      for entry in node.findall("parameter")]
        return f"{self._spell(node.find('return').get('type-id'))} ({', '.join(parameters)})"

    def _spell(self, identity):
        """A type in words, by the names that the header gives it."""
        node = self.types[identity]
        inner = node.get("type-id")
        if node.tag == "pointer-type-def":
            return self._spell(inner) + " *"
        if node.tag == "qualified-type-def":
            words = [word for word in ("const", "volatile", "restrict") if node.get(word) == "yes"]
            return f"{self._spell(inner)} {' '.join(words)}"
        if node.tag == "array-type-def":
            return self._spell(inner) + "".join(f"[{part.get('length')}]" for part in node.findall("subrange"))
        if node.tag == "function-type":
            return self._function(node)
        kind = {"class-decl": "struct ", "union-decl": "union ", "enum-decl": "enum "}.get(node.tag, "")
        return kind + node.get("name")


class Comparison:
    """What is allowed, and what is not, of the way from one release to another."""

    def __init__(self, old, new):
        self.forbidden, self.allowed = [], []
        self._names("header", {os.path.basename(path): "" for path, header in old.headers.items() if header.promised},
                    {os.path.basename(path): "" for path in new.headers})
        freed = old.functions.keys() & new.free
        self.forbidden += [f"function {name} is promised no more" for name in sorted(freed)]
        self._names("function", {name: kind for name, kind in old.functions.items() if name not in freed},
                    new.functions)
        needed = new.functions_of("port.h")
        self.forbidden += [f"ports have to have function {name}" for name in sorted(needed - old.functions_of("port.h"))]
        self._names("type", old.typedefs, new.typedefs)
        self._names("macro", old.macros, new.macros)
        self.forbidden += [f"macro {name} takes {new.parameters[name]}, and took {old.parameters[name]}"
                           for name in sorted(old.macros.keys() & new.macros.keys())
                           if new.parameters[name] != old.parameters[name]]
        self._names("enum", dict.fromkeys(old.enums, ""), dict.fromkeys(new.enums, ""))
        for name in old.enums.keys() & new.enums.keys():
            self._names(f"enum {name}:", old.enums[name], new.enums[name])
        self._names("struct", dict.fromkeys(old.structs, ""), dict.fromkeys(new.structs, ""))
        if old.manual is not None and new.manual is not None:
            self._names("command:", old.manual, new.manual)
        for name in old.structs.keys() & new.structs.keys():
            self._struct(name, old.structs[name], new.structs[name])

    def _names(self, kind, old, new):
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                self.forbidden.append(f"{kind} {name} is gone")
            elif name not in old:
                self.allowed.append(f"{kind} {name} is new")
            elif old[name] != new[name]:
                may = kind == "macro" and (MAY_CHANGE.search(name) or eased(name, old[name], new[name]))
                (self.allowed if may else self.forbidden).append(
                    f"{kind} {name} is {new[name]}, and was {old[name]}")

    def _struct(self, name, old, new):
        if old.size != new.size:
            self.allowed.append(f"struct {name} has {new.size} bytes, and had {old.size}")
        if old.private:
            return
        if new.private:
            self.forbidden.append(f"struct {name} is private now")
            return
        names = [member for member, _ in new.members]
        for place, (member, kind) in enumerate(old.members):
            if member not in names:
                self.forbidden.append(f"struct {name}: member {member} is gone")
            elif names.index(member) != place:
                self.forbidden.append(f"struct {name}: member {member} is number {names.index(member) + 1}, "
                                      f"and was number {place + 1}")
            elif new.members[place][1] != kind:
                self.forbidden.append(f"struct {name}: member {member} is {new.members[place][1]}, and was {kind}")
        for member in names:
            if member not in dict(old.members):
                self.allowed.append(f"struct {name}: member {member} is new")


def undefined(release, library):
    """What the headers declare and the library lacks, but for ports that it was built without."""
    lines = run("nm", "-g", "--defined-only", library).split("\n")
    there = {plain(line.split()[-1]) for line in lines if " T " in line}
    return [name for names in release.declared.values() if there.intersection(names)
            for name in names if name not in there]


def bound(old, new):
    """Whether the later version has to keep what the earlier one promised."""
    return "-" not in old and not old.startswith("0.") and old.split(".")[0] == new.split(".")[0]


def main():
    folders = [os.path.abspath(folder) for folder in sys.argv[1:3]]
    old, new = (Release(folder) for folder in folders)
    missing = undefined(new, sys.argv[3]) if len(sys.argv) > 3 else []
    if missing:
        print("abi: declared, but not in the library: " + " ".join(missing))
        return 1
    comparison = Comparison(old, new)
    promised = bound(old.version, new.version)
    for line in comparison.forbidden:
        print(("forbidden: " if promised else "not promised: ") + line)
    for line in comparison.allowed:
        print("allowed: " + line)
    if comparison.forbidden and promised:
        print(f"abi: {len(comparison.forbidden)} differences between {old.version} and {new.version} "
              "that lock/STABILITY.md forbids")
        return 1
    print(f"abi: {len(old.functions)} functions of {old.version} and {len(new.functions)} of {new.version}: "
          + ("nothing that a program relies on has changed" if promised else
             "the earlier one promised nothing, so nothing is forbidden"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
