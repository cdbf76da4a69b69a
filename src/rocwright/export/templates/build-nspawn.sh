[ "$(id -u)" = 0 ] || { echo "build-nspawn.sh: systemd-nspawn needs root" >&2; exit 2; }
[ -n "${WORK:-}" ] || WORK=$PWD/nspawn      # on a disk with room: roots, sources and artifacts lie there
mkdir -p "$WORK"

inside() {      # ROOT [--bind...] -- COMMAND: in a root that stays as it is, without a network
    root=$1
    shift
    systemd-nspawn --quiet --register=no --keep-unit --as-pid2 --private-network --directory="$root" "$@"
}
component() {   # NAME SCRIPT CACHE: the folder of a component, and its commands in the root
    name=$1
    script=$2
    ccache=$WORK/$3      # what a component leaves there reaches no other
    shift 3
    mkdir -p "$WORK/$name/build/src" "$WORK/$name/out" "$WORK/$name/in" "$ccache"
    inside "$WORK/root-build" --volatile=no --read-only \
        --tmpfs=/tmp:mode=1777 --bind="$WORK/$name/build:@BUILD@" --bind="$WORK/$name/out:@OUT@" \
        --bind-ro="$WORK/$name/in:@IN@" --bind="$ccache:/ccache" --bind-ro="$PWD/steps:@INSIDE@" "$@" \
        --setenv=JOBS="${JOBS:-}" /bin/sh "@INSIDE@/$script"
}
