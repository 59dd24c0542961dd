"""Makes a table of runs on a device: champion's time, the copy bound of the same scoring, gain over the baseline.

    python3 bench/h200/table.py FOLDER [--gates]

Reads every ledger.jsonl below FOLDER. All figures come from the last full scoring that crowned or confirmed each run's champion.
`--gates` adds where the time of each full scoring went.
"""

import datetime
import json
import pathlib
import sys


def read(ledger):
    return [json.loads(line) for line in ledger.read_text().splitlines()]


def seconds(records):
    times = [datetime.datetime.fromisoformat(r["time"].replace("Z", "+00:00")) for r in records]
    return (times[-1] - times[0]).total_seconds()


def scorings(records):
    for record in records:
        body = record["body"]
        if record["kind"] in ("decided", "confirmed") and "verdict" in body:
            yield body["candidate"], body["verdict"]


def line(run, records):
    opened = records[0]["body"]
    outcome = next((r["body"].get("outcome", "") for r in reversed(records) if "outcome" in r["body"]), "open")
    screened = sum(r["kind"] == "screened" for r in records)
    last = None
    for _, verdict in scorings(records):
        if verdict["verdict"] == "accept":
            last = verdict
    row = [run, opened["instance"], f"{seconds(records):.0f}", str(screened), outcome]
    if last is None:
        return [row + ["", "", "", "", ""]]
    gain = last.get("over_baseline") or {}
    floor = next((gate for gate in last["gates"] if gate["name"] == "floor"), None)
    rows = []
    for workload in (floor or {}).get("evidence", {}).get("workloads", []):
        if not workload.get("median_ns"):
            continue
        interval = "{:.2f} ({:.2f} to {:.2f})".format(*(gain.get(key, 0) for key in ("point", "lower", "upper")))
        rows.append(
            row
            + [
                workload["workload"],
                f"{workload['median_ns'] / 1e3:.1f}",
                f"{workload['copy_ns'] / 1e3:.1f}, {workload.get('copied_by', 'driver')}",
                f"{workload['share_of_copy']:.3f}",
                interval if gain else "",
            ]
        )
    return rows


def main():
    folder, gates = pathlib.Path(sys.argv[1]), "--gates" in sys.argv
    print("| run | instance | wall, s | screened | outcome | workload | champion, us | copy, us | share of copy | gain over baseline, all workloads |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    ledgers = sorted(folder.rglob("ledger.jsonl"))
    for ledger in ledgers:
        for row in line(ledger.parent.name, read(ledger)):
            print("| " + " | ".join(row) + " |")
    if not gates:
        return
    for ledger in ledgers:
        for candidate, verdict in scorings(read(ledger)):
            parts = ", ".join(f"{g['name']} {g['ms'] / 1e3:.1f}" for g in verdict["gates"] if g["ms"] > 200)
            total = sum(g["ms"] for g in verdict["gates"]) / 1e3
            print(f"{ledger.parent.name} {candidate} {verdict['code']}: {total:.1f} s: {parts}")


main()
