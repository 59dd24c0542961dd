"""Makes a table of runs on a device: champion's time, the copy bound of the same scoring, gain over the baseline.

    python3 bench/h200/table.py FOLDER

Reads every ledger.jsonl below FOLDER. All figures come from the last full scoring of each run's champion.
"""

import json
import pathlib
import sys


def scorings(ledger):
    for line in ledger.read_text().splitlines():
        record = json.loads(line)
        body = record["body"]
        if record["kind"] in ("decided", "confirmed") and "verdict" in body:
            yield body["candidate"], body["verdict"]


def rows(folder):
    for ledger in sorted(pathlib.Path(folder).rglob("ledger.jsonl")):
        opened = json.loads(ledger.read_text().splitlines()[0])["body"]
        last = None
        for candidate, verdict in scorings(ledger):
            if verdict["verdict"] == "accept":
                last = (candidate, verdict)
        if last is None:
            yield opened["instance"], "", "baseline stands", "", "", ""
            continue
        candidate, verdict = last
        gain = verdict.get("over_baseline") or {}
        floor = next((gate for gate in verdict["gates"] if gate["name"] == "floor"), None)
        for workload in (floor or {}).get("evidence", {}).get("workloads", []):
            if workload["workload"] == "hidden neighbour" or not workload.get("median_ns"):
                continue
            yield (
                opened["instance"],
                workload["workload"],
                f"{workload['median_ns'] / 1e3:.1f}",
                f"{workload['copy_ns'] / 1e3:.1f}",
                f"{workload['share_of_copy']:.3f}",
                f"{gain.get('point', 0):.2f} ({gain.get('lower', 0):.2f})" if gain else "",
            )


print("| instance | workload | champion, us | copy, us | share of copy | gain over baseline (lower bound), all workloads |")
print("|---|---|---|---|---|---|")
for row in rows(sys.argv[1]):
    print("| " + " | ".join(row) + " |")
