# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a folder of HTML, a line each: site_links.py FOLDER. A link or a picture leads to a file that is
there, and to an anchor that is in it; an anchor is there once; nothing is loaded from elsewhere, and there are no
scripts."""
import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads, self.scripts = [], [], [], 0
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" and "href" in attributes else []
        self.loads += [attributes[name] for name in ("src", "href") if tag != "a" and name in attributes]
        self.scripts += tag in ("script", "iframe", "object")


paths = [os.path.join(folder, name) for folder, _, names in os.walk(sys.argv[1]) for name in names]
pages = {path: Page(path) for path in paths if path.endswith(".html")}
checked = 0
for path, page in pages.items():
    wrong = [f"the anchor {name} twice" for name in set(page.anchors) if page.anchors.count(name) > 1]
    wrong += ["a script"] * page.scripts + [f"{at} is loaded" for at in page.loads if ":" in at]
    for link in page.links + page.loads:
        parts = urllib.parse.urlsplit(link)
        if not parts.scheme:
            to = os.path.normpath(os.path.join(os.path.dirname(path), parts.path)) if parts.path else path
            checked += 1
            if to not in paths:
                wrong.append(f"{link} is not there")
            elif parts.fragment and parts.fragment not in pages[to].anchors:
                wrong.append(f"{link} has no such anchor")
    for what in wrong:
        print(f"{path}: {what}")
print(f"# {len(pages)} pages, {checked} links", file=sys.stderr)
