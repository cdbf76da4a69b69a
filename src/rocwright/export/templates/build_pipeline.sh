#!/bin/sh
# Builds @ABOUT@ with podman, buildah or docker.
#   ./build_pipeline.sh [NAME=VALUE ...]      names are those of versions.env, whose values are the defaults
#   ENGINE=buildah OUT=folder JOBS=4 ./build_pipeline.sh      without JOBS as many as processors and memory suffice for
@IMAGE@@WARNINGS@set -eu
cd "$(dirname "$0")"
known='@KNOWN@'

put() {         # NAME=VALUE from WHERE: only known names, only plain values; nothing is ever executed
    case $1 in *=*) ;; *) echo "build_pipeline.sh: $2: '$1' is not NAME=VALUE" >&2; exit 2 ;; esac
    name=${1%%=*} value=${1#*=}
    case " $known " in *" $name "*) ;; *) echo "build_pipeline.sh: $2: '$name' is not one of: $known" >&2; exit 2 ;; esac
    case $value in
        *[!A-Za-z0-9._,:/@+~=^\ -]*) echo "build_pipeline.sh: $2: the value of $name is not plain" >&2; exit 2 ;;
    esac
    [ -z "$value" ] || export "$name=$value"
}
while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) continue ;; esac
    put "$line" 'the file of versions'
done < versions.env
for given; do put "$given" 'the command line'; done
@TARGETS@=$(printf '%s' "$@TARGETS@" | tr ',' ';')
export @TARGETS@

case ${JOBS:-} in *[!0-9]* | 0*) echo "build_pipeline.sh: JOBS is '$JOBS': give a number, such as JOBS=4" >&2; exit 2 ;; esac

ENGINE=${ENGINE:-$(command -v podman || command -v buildah || command -v docker || true)}
[ -n "$ENGINE" ] || { echo "build_pipeline.sh: install podman, buildah or docker, or give ENGINE=..." >&2; exit 2; }
./prepare.sh ${IMAGE:+image}
set --
for name in $known; do
    if value=$(printenv "$name"); then set -- "$@" --build-arg "$name=$value"; fi
done
[ -z "${JOBS:-}" ] || set -- "$@" --build-arg "JOBS=$JOBS"
@BUILD@
