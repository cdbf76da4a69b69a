#!/bin/sh
# Runs a carried verification on this machine and writes what came of it to result.json beside it.
#
# usage: sh run.sh [RESULT]
# Needs tar, xz, unshare and chroot, as root or as a user who may make namespaces. Nothing is installed, no network is used.
# What a driver wants and this machine has not may lie in a folder `libraries` beside this script.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

inside() {      # WORK: in a mount namespace of its own
    root=$1/root
    for folder in dev proc sys; do
        mkdir -p "$root/$folder"
        mount --rbind "/$folder" "$root/$folder"
    done
    drivers "$root"
    # NVIDIA's driver opens these by name: without a display it works through EGL, whose vendors these files name
    mkdir -p "$root/usr/share/glvnd/egl_vendor.d"
    for vendor in /etc/glvnd/egl_vendor.d/*.json /usr/share/glvnd/egl_vendor.d/*.json \
        /usr/local/nvidia/share/glvnd/egl_vendor.d/*.json; do
        [ ! -e "$vendor" ] || cp "$vendor" "$root/usr/share/glvnd/egl_vendor.d/"
    done
    for name in libEGL.so.1 libGLdispatch.so.0 libXext.so.6 libX11.so.6 libxcb.so.1; do
        library=$(located "$name")
        [ -z "$library" ] || lay "$root" "$library"
    done
    export VK_DRIVER_FILES LD_LIBRARY_PATH=/driver
    exec chroot "$root" /usr/bin/python3 /carry/run.py
}
drivers() {     # ROOT: lays the Vulkan drivers of this machine, with all that they need, where the carried root has not its own
    mkdir -p "$1/driver"
    named=$(printf '%s' "${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}" | tr : ' ')
    VK_DRIVER_FILES=
    for icd in $named /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json \
        /usr/local/nvidia/share/vulkan/icd.d/*.json; do
        [ -e "$icd" ] || continue
        library=$(located "$(sed -n 's/.*"library_path"[^"]*"\([^"]*\)".*/\1/p' "$icd")")
        [ -n "$library" ] || continue
        lay "$1" "$library"
        sed "s|\"library_path\"[^\"]*\"[^\"]*\"|\"library_path\": \"/driver/$(basename "$library")\"|" "$icd" \
            > "$1/driver/$(basename "$icd")"
        VK_DRIVER_FILES="${VK_DRIVER_FILES:+$VK_DRIVER_FILES:}/driver/$(basename "$icd")"
    done
}
located() {     # LIBRARY: its path, "" where it is not here
    case $1 in
        /*) [ ! -e "$1" ] || printf '%s' "$1" ;;
        ?*) for folder in "$here/libraries" $(printf '%s' "${LD_LIBRARY_PATH:-}" | tr : ' ') /usr/local/nvidia/lib64; do
                if [ -e "$folder/$1" ]; then printf '%s' "$folder/$1"; return; fi
            done
            PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | sed -n "s|.*[[:space:]]$1 .*=> ||p" | head -n 1 ;;
    esac
}
lay() {         # ROOT LIBRARY: with what it is linked to, and what it opens by name
    folder=$(dirname "$2")
    linked=$(LD_LIBRARY_PATH="$folder:${LD_LIBRARY_PATH:-}" ldd "$2" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p')
    case $2 in *nvidia*) linked="$linked $(echo "$folder"/*nvidia*.so*)" ;; esac
    for file in "$2" $linked; do
        name=$(basename "$file")
        # the carried C library goes with its own parts
        if [ -e "$1/driver/$name" ] || find "$1"/usr/lib* -name "$name" | grep -q .; then continue; fi
        : > "$1/driver/$name"
        mount --bind "$file" "$1/driver/$name"
    done
}

if [ "${1:-}" = --inside ]; then inside "$2"; fi
result=${1:-$here/result.json}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
tar -C "$work" -xJf "$here/carry.tar.xz"
if [ "$(id -u)" = 0 ]; then set -- --mount; else set -- --user --map-root-user --mount; fi
status=0
unshare "$@" sh "$here/run.sh" --inside "$work" || status=$?
[ -s "$work/root/carry/result.json" ] || { echo "run.sh: nothing came of it (status $status)" >&2; exit 1; }
cp "$work/root/carry/result.json" "$result"
echo "written to $result: take it back, then rocwright verify --import $(basename "$result")"
exit "$status"
