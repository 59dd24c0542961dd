#!/usr/bin/env bash
# Runs operators on a machine with an H200 and packs what is worth keeping. Resumable: a step that left its mark in
# $STATE is not repeated. Carried there: this folder, `tasks/`, the release binary and, optionally, test binaries.
#
#   bench/h200/run.sh BINARY [SECONDS] [OPERATOR[:TYPE[:SECONDS]]…]
#
# TOTAL=SECONDS (default 570) starts no operator that would not end in time; the next call goes on where this one stopped.
# MECHANISMS=screen leaves flag control and last confirmation out: half the time, and no figure over the flag control.
# TESTS=BINARIES runs test binaries first. BINARY is `ksmith`; SECONDS is the wall time of one run (default 60); operators
# default to the list beside this script. Results lie in $OUT (default ./h200-out): evidence.tar.gz with trimmed runs as
# they are committed (h200/TASK/RUN and heads.txt), results.jsonl, log.txt, table.md.
uname -r
case $(uname -r) in 4.4.0*) echo "gVisor: no profiler, no memory checker; give the machine back"; exit 3 ;; esac
set -u
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))
operators=("$@")
[ ${#operators[@]} -gt 0 ] || mapfile -t operators < <(grep -v '^#' "$here/operators.txt")
out=${OUT:-$PWD/h200-out}
state=${STATE:-/tmp/ksmith-h200}
mkdir -p "$out" "$state/packed"
export HOME=$state/home
mkdir -p "$HOME"
# Records name the task as seen from here.
cp -r "$here/../../tasks" "$state/"
cd "$state" || exit 1

step() { # NAME COMMAND…: once, with its time.
  local name=$1 start=$SECONDS
  shift
  [ -e "$state/$name.done" ] && return 0
  "$@" >>"$out/log.txt" 2>&1
  local code=$?
  printf '%s: exit %d after %d s\n' "$name" $code $((SECONDS - start)) | tee -a "$out/log.txt"
  # 0, 1 and 3 (no statement on a noisy machine) are answers of the judge; anything else is tried again by the next call.
  case $code in 0 | 1 | 3) touch "$state/$name.done" ;; esac
  return 0
}

field() { grep -o "\"$1\": *\"[^\"]*\"" "$2" | head -n 1 | cut -d'"' -f4; }

one() { # OPERATOR TYPE SECONDS: one run; its last line of JSON goes to results.jsonl, its trimmed record to the evidence.
  local task=$1 type=$2 wall=$3 result=$state/$1-${2:-all}.json
  local arguments=()
  [ -n "$type" ] && arguments+=(--type "T=$type")
  "$binary" run "tasks/$task" --backend cuda "${arguments[@]}" --wall "${wall}s" --seed 1 \
    --mechanisms "${MECHANISMS:-screen,flag-control,final}" --json >"$result"
  local code=$? run head
  [ -s "$result" ] && { tr -d '\n' <"$result"; echo; } >>"$out/results.jsonl"
  run=.ksmith/runs/$(field run "$result")
  head=$(field head "$result")
  if [ -f "$run/ledger.jsonl" ]; then
    local target=$state/packed/h200/$task/$(basename "$run")
    mkdir -p "$target"
    # Without working copies, caches, secrets and views: what `ksmith verify` needs, and nothing else.
    tar cf - -C "$run" ledger.jsonl objects certificate.json task.lock.json | tar xf - -C "$target"
    echo "$(basename "$run") $head" >>"$state/packed/heads.txt"
    "$binary" verify "$target" --head "$head" || echo "damaged: $target"
    tar czf "$out/evidence.tar.gz" -C "$state/packed" .
  fi
  return $code
}

step doctor "$binary" doctor
for tests in ${TESTS:-}; do step "tests-$(basename "$tests")" "$tests" --nocapture --test-threads 1; done
for operator in "${operators[@]}"; do
  IFS=: read -r task type wall <<<"$operator"
  wall=${wall:-$seconds}
  if [ $((SECONDS + wall + 20)) -gt "${TOTAL:-570}" ]; then
    echo "stopped before $operator at $SECONDS s" | tee -a "$out/log.txt"
    break
  fi
  step "run-$task-${type:-all}" one "$task" "$type" "$wall"
done
ls -l "$out"
python3 "$here/table.py" "$state/packed" --gates | tee "$out/table.md"
grep -h 'device_refused\|damaged' -r "$state/packed" --include=ledger.jsonl | head -n 3 | cut -c1-600
tail -n 60 "$out/log.txt"
