#!/bin/sh
# Stands in for ninja in a shard: compiles every Nth object of what it is asked for, and ends the step there.
#
# ROCWRIGHT_SHARD is PART/PARTS. Only the ninja of the command that is split counts (ROCWRIGHT_SHARD_ACTIVE):
# configuring runs ninja for tests of the compiler, and a build may run another build inside, which are whole.
set -eu

# the ninja behind this one
here=$(dirname "$0")
real=
IFS=:
for folder in $PATH; do
  for name in "$(basename "$0")" ninja ninja-build; do
    [ -n "$real" ] || [ "$folder" = "$here" ] || [ ! -x "$folder/$name" ] || real="$folder/$name"
  done
done
unset IFS
if [ -z "$real" ]; then
  echo "shard: no ninja behind $0" >&2
  exit 127
fi

[ -n "${ROCWRIGHT_SHARD_ACTIVE-}" ] || exec "$real" "$@"
case "$PWD/" in */CMakeFiles/*) exec "$real" "$@" ;; esac
for word in "$@"; do
  case "$word" in --version | --help | -h | -n | -t*) exec "$real" "$@" ;; esac
done
unset ROCWRIGHT_SHARD_ACTIVE

# its options, and the targets behind or between them, one a line
at=/build/shard
: > "$at/options"
: > "$at/targets"
while [ $# -gt 0 ]; do
  case "$1" in
    -[Cfjkldw]) printf '%s\n%s\n' "$1" "$2" >> "$at/options"; shift ;;
    -*) printf '%s\n' "$1" >> "$at/options" ;;
    *) printf '%s\n' "$1" >> "$at/targets" ;;
  esac
  shift
done

run() { # ninja with the options, some more, and the words in a file
  file=$1
  shift
  set -- "$@" --
  while IFS= read -r word; do set -- "$@" "$word"; done < "$file"
  more=
  while IFS= read -r word; do more="$more '$(printf '%s' "$word" | sed "s/'/'\\\\''/g")'"; done < "$at/options"
  eval 'exec "$real"' "$more" '"$@"'
}

if (run "$at/targets" -t inputs) > "$at/all" 2> /dev/null; then :; else
  # before ninja 1.11: all objects, needed or not
  (run /dev/null -t targets all) | sed 's/: [^:]*$//' > "$at/all"
fi

part=${ROCWRIGHT_SHARD%/*}
parts=${ROCWRIGHT_SHARD#*/}
count=0
: > "$at/objects"
sed "s/^'\(.*\)'\$/\1/" "$at/all" | grep '\.o$' | LC_ALL=C sort -u | while IFS= read -r object; do
  count=$((count + 1))
  [ $((count % parts)) -ne $((part % parts)) ] || printf '%s\n' "$object" >> "$at/objects"
done

echo "shard $ROCWRIGHT_SHARD: $(wc -l < "$at/objects") objects to compile"
# what does not compile here is told by the step itself, which compiles it again
[ ! -s "$at/objects" ] || (run "$at/objects" -k 0) || echo "shard $ROCWRIGHT_SHARD: some did not compile"
touch "$at/done"
exit 1
