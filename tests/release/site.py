# SPDX-License-Identifier: Apache-2.0
"""The pages as HTML, for any web server or none: site.py FOLDER, from the top folder.

It begins with README.md and the manual, and goes on with what is linked to: a page (*.md) is made into HTML by
cmark-gfm, a picture is copied, another file is shown as it is, and a folder has its README.md, or a list. A link to
what is not there fails.
"""
import html
import os
import re
import subprocess
import sys

MANUAL = "boards/fairlock/fairlock.1"
NAVIGATION = [("fairlock", "README.md"), ("manual", MANUAL), ("how it works", "lock/README.md"),
              ("production", "lock/PRODUCTION.md"), ("format", "lock/FORMAT.md"), ("tests", "tests/README.md")]
STYLE = """:root { color-scheme: light dark }
body { font: 1rem/1.5 sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem }
nav a { margin-right: 1rem }
pre, code { font-family: monospace; background: #8882 }
pre { padding: .6rem; overflow: auto }
pre code { background: none }
table { border-collapse: collapse; display: block; overflow: auto }
td, th { border: 1px solid #8886; padding: .2rem .5rem; vertical-align: top; text-align: left }
th:empty { padding: 0 }
.head td { border: 0 }
.permalink { color: inherit; text-decoration: none }
img { max-width: 100%; background: white }
dd { margin: 0 0 .5rem 2rem }
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<link rel="stylesheet" href="{up}style.css">
<nav>{navigation}</nav>
<main>
{body}</main>
</html>
"""


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


files = set(run("sh", "tests/tools/sources.sh", "*").splitlines())
folders = {""} | {file[:at.start()] for file in files for at in re.finditer("/", file)}


def place(path):
    """Where the site has this file or folder."""
    if path in folders:
        path = os.path.join(path, "README.md")
    folder, name = os.path.split(path)
    if name == "README.md":
        return os.path.join(folder, "index.html")
    if name.endswith((".svg", ".png")):
        return path
    return (path[:-3] if name.endswith(".md") else path) + ".html"


def with_anchors(text):
    """Headings get the anchors that links to them expect: as on GitHub."""
    seen = {}

    def anchored(heading):
        words = html.unescape(re.sub("<[^>]*>", "", heading[2])).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        name += f"-{seen[name]}" if seen[name] else ""
        return f'<h{heading[1]} id="{name}">{heading[2]}</h{heading[1]}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, text, flags=re.S)


def body_of(path):
    if path.endswith(".md"):
        return with_anchors(run("cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", path))
    if path == MANUAL:
        return run("mandoc", "-T", "html", "-O", "fragment,toc", path)
    if path in folders:
        inside = sorted({file[len(path) + 1:].split("/")[0] for file in files if file.startswith(path + "/")})
        return f"<h1>{path}</h1>\n<ul>\n" + "".join(f'<li><a href="{name}">{name}</a>\n' for name in inside) + "</ul>\n"
    return f"<h1>{path}</h1>\n<pre>{html.escape(open(path, encoding='utf-8').read())}</pre>\n"


class Site:
    def __init__(self, to):
        self.to, self.made, self.next = to, set(), []

    def link(self, page, path):
        """The address of a file or folder in a page; it becomes part of the site."""
        if path not in files and path not in folders:
            sys.exit(f"{page} has a link to {path}, which is not there")
        self.next.append(path)
        return html.escape(os.path.relpath(place(path), os.path.dirname(place(page)) or "."))

    def with_links(self, page, text):
        folder = page if page in folders else os.path.dirname(page)

        def linked(link):
            path, hash_, anchor = html.unescape(link[2]).partition("#")
            if not path or re.match("[a-z]+:", path):
                return link[0]
            return f'{link[1]}="{self.link(page, os.path.normpath(os.path.join(folder, path)))}{hash_}{anchor}"'

        return re.sub(r'\b(href|src)="([^"]*)"', linked, text)

    def write(self, path):
        if place(path) in self.made:
            return
        self.made.add(place(path))
        to = os.path.join(self.to, place(path))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if path in folders and path and os.path.join(path, "README.md") in files:
            path = os.path.join(path, "README.md")
        if place(path) == path:
            page = open(path, "rb").read()
        else:
            body = self.with_links(path, body_of(path))
            title = re.search("<h1[^>]*>(.*?)</h1>", body, re.S)
            page = PAGE.format(
                title=re.sub("<[^>]*>", "", title[1] if path != MANUAL else "fairlock(1)"), body=body,
                up="../" * place(path).count("/"),
                navigation=" ".join(f'<a href="{self.link(path, to)}">{name}</a>' for name, to in NAVIGATION)).encode()
        with open(to, "wb") as file:
            file.write(page)


site = Site(sys.argv[1])
site.next = ["README.md", MANUAL]
while site.next:
    site.write(site.next.pop())
with open(os.path.join(site.to, "style.css"), "w") as file:
    file.write(STYLE)
print(len(site.made), "files")
