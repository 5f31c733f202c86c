#!/bin/sh
# One session on a machine with a GPU, from a checkout with its dependencies installed: everything verified and measured,
# the sanitizer's four tools on the small cases. Results go to the folder given first; more words go to `opwalker verify`.
# On a machine with two GPUs or more, all_reduce between processes as well.
#   sh tests/gpu/session.sh OUT [--library FILE.so …]
out=$1
shift
mkdir -p "$out"
python3 -m opwalker verify --bench --json "$@" > "$out/verify.json" 2> "$out/verify.err"
echo "verify: exit code $?"
tail -n 3 "$out/verify.err"
python3 - "$out/verify.json" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
print(report["device"], "copy", report["copy_gb_per_s"], "GB/s")
for one in report["results"]:
    if one["time_us"]:
        print(f"{one['op']:36} {one['case']:40} {one['implementation']:10} {one['time_us']:9.1f} us {one['share_of_copy'] or 0:.2f}")
    elif one["verdict"] != "confirmed":
        print(one["verdict"], one["op"], one["implementation"], one["case"], one["seed"], *one["reasons"][:2], sep=" | ")
for one in report["wrong_variants"]:
    if not one["refuted"]:
        print("NOT REFUTED", one["op"], one["variant"], one["reason"])
print(len(report["results"]), "results,", len(report["wrong_variants"]), "wrong variants")
P
for tool in memcheck racecheck initcheck synccheck; do
  timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 python3 -m tests.gpu.sanitize > "$out/$tool.log" 2>&1
  echo "$tool: exit code $?"
  tail -n 3 "$out/$tool.log"
done
python3 -m tests.gpu.all_reduce --json "$out/all_reduce.json" 2> "$out/all_reduce.err"
echo "all_reduce: exit code $?"
