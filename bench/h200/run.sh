#!/usr/bin/env bash
# Runs operators on a machine with an H200 and packs what is worth keeping. Resumable: a step that left its mark in
# $STATE is not repeated. Carried there: this folder, `tasks/`, the release binary and, optionally, test binaries.
#
#   bench/h200/run.sh BINARY [SECONDS] [OPERATOR[:TYPE]…]
#
# TOTAL=SECONDS (default 570) starts no operator that would not end in time; the next call goes on where this one stopped.
# MECHANISMS=screen leaves flag control and last confirmation out: half the time, and no figure over the flag control.
# BINARY is `ksmith`; SECONDS is the wall time of one run (default 60); operators default to the list below. Results lie
# in $OUT (default ./h200-out): runs.tar.gz with one trimmed run per operator and dtype, results.jsonl, log.txt.
uname -r
case $(uname -r) in 4.4.0*) echo "gVisor: no profiler, no memory checker; give the machine back"; exit 3 ;; esac
set -u
here=$(cd "$(dirname "$0")" && pwd)
# Records name the command and the task's folder: both lie in a place that says nothing about a machine.
place=/opt/kernelsmith
mkdir -p "$place/bin" && cp "$1" "$place/bin/ksmith" && cp -r "$here/../../tasks" "$place/"
binary=$place/bin/ksmith
seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))
operators=("$@")
[ ${#operators[@]} -gt 0 ] || mapfile -t operators < <(grep -v '^#' "$here/operators.txt")
out=${OUT:-$PWD/h200-out}
state=${STATE:-/tmp/ksmith-h200}
mkdir -p "$out" "$state/runs"
export HOME=$state/home
mkdir -p "$HOME"

step() { # NAME COMMAND…: once, with its time.
  local name=$1 start=$SECONDS
  shift
  [ -e "$state/$name.done" ] && return 0
  "$@" >>"$out/log.txt" 2>&1
  local code=$?
  printf '%s: exit %d after %d s\n' "$name" $code $((SECONDS - start)) | tee -a "$out/log.txt"
  # 0 and 1 are answers of the judge; anything else is tried again by the next call.
  [ $code -le 1 ] && touch "$state/$name.done"
  return 0
}

one() { # OPERATOR TYPE: one run; its last line of JSON goes to results.jsonl.
  local task=$1 type=$2 dir=$state/runs/$1-${2:-all}
  local arguments=()
  [ -n "$type" ] && arguments+=(--type "T=$type")
  mkdir -p "$dir"
  (cd "$dir" && "$binary" run "$place/tasks/$task" --backend cuda "${arguments[@]}" --wall "${seconds}s" --seed 1 \
    --mechanisms "${MECHANISMS:-screen,flag-control,final}" --json >result.json)
  local code=$?
  [ -s "$dir/result.json" ] && { tr -d '\n' <"$dir/result.json"; echo; } >>"$out/results.jsonl"
  return $code
}

pack() {
  # Without working copies, caches and secrets: what `ksmith verify` needs, and nothing else.
  (cd "$state/runs" && find . -path '*/.ksmith/runs/*' -prune -print | while read -r run; do
    target=$state/packed/$(basename "$(dirname "$(dirname "$(dirname "$run")")")")/$(basename "$run")
    mkdir -p "$target"
    (cd "$run" && tar cf - --exclude=./judge --exclude=./candidates --exclude=./proposals .) | tar xf - -C "$target"
  done)
  tar czf "$out/runs.tar.gz" -C "$state/packed" . 2>/dev/null
  ls -l "$out"
}

step doctor "$binary" doctor
if [ -n "${TESTS:-}" ]; then step tests "$TESTS" --nocapture --test-threads 1; fi
for operator in "${operators[@]}"; do
  task=${operator%%:*}
  type=
  [ "$task" = "$operator" ] || type=${operator#*:}
  if [ $((SECONDS + seconds + 20)) -gt "${TOTAL:-570}" ]; then
    echo "stopped before $operator at $SECONDS s" | tee -a "$out/log.txt"
    break
  fi
  step "run-$task-${type:-all}" one "$task" "$type"
  rm -rf "$state/packed"
  pack >/dev/null
done
pack
for run in "$state"/packed/*/*; do "$binary" verify "$run" >>"$out/log.txt" 2>&1 || echo "damaged: $run"; done
python3 "$here/table.py" "$state/runs" | tee "$out/table.md"
tail -n 40 "$out/log.txt"
