# SPDX-License-Identifier: Apache-2.0
"""What promtool has to run to see that each query of a dashboard for Grafana has an answer, if the series are those
of these files in Prometheus's text format: dashboard.py DASHBOARD FILE... >TEST.yml (JSON is YAML). Panels that
overlap fail."""
import json
import os
import re
import sys

panels = json.load(open(sys.argv[1]))["panels"]
taken = {}
for panel in panels:
    at = panel["gridPos"]
    for place in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
        if place[0] >= 24 or place in taken:
            sys.exit(f"{panel['title']} lies over {taken.get(place, 'the edge')}")
        taken[place] = panel["title"]

series = [{"series": 'ALERTS{alertname="FairlockLost", alertstate="firing"}', "values": "1x10"}]
for path in sys.argv[2:]:
    for line in open(path):
        if not line.startswith("#"):
            sample, value = line.rstrip("\n").rsplit(" ", 1)
            instance = f',instance="{os.path.basename(path)}"}}'
            series.append({"series": sample[:-1] + instance, "values": " ".join([value] * 11)})

queries = [target["expr"] for panel in panels for target in panel["targets"]]
if len(queries) < len(panels) or len({panel["id"] for panel in panels}) < len(panels):
    sys.exit("a panel without a query, or two with one id")
asked = []
for query in queries:
    query = re.sub(r"\$__\w+", "5m", query).replace("$lock", ".*")
    asked.append({"expr": f"count({query}) > bool 0", "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]})
json.dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]}, sys.stdout)
