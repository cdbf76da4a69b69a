#!/bin/sh
# Brings what the Containerfile and the build script need: sources and packages, each checked, and edited trees.
# What is here already and is as it should be is not fetched again.   usage: ./prepare.sh [image]
set -eu
cd "$(dirname "$0")"
epoch=@EPOCH@

pending() {     # NAME WORDS: stop, where nobody said what the lock left open
    echo "prepare.sh: pending: $2" >&2
    echo "  give $1=..., or export anew after an online \`rocwright lock\`" >&2
    exit 2
}
checked() {     # FOLDER: every file of its list is there, and as the list says
    (cd "$1" && sha256sum --check --quiet sha256)
}
given() {       # FOLDER HASHES: every file has one of the hashes that were given
    for file in "$1"/*; do
        case ${file##*/} in sha256 | given | commit) continue ;; esac
        sum=$(sha256sum "$file" | cut -d ' ' -f 1)
        case " $2 " in *" $sum "*) ;; *) echo "prepare.sh: $file has the sha256 $sum, not $2" >&2; exit 4 ;; esac
    done
    printf '%s' "$2" > "$1/given"
}
git_tree() {    # NAME URL COMMIT PATHS REPOSITORY [PATH=COMMIT ...]: a commit with its submodules, or paths of it
    name=$1 url=$2 commit=$3 paths=$4 repository=$5
    shift 5
    if [ -e "sources/$name/commit" ] && [ "$(cat "sources/$name/commit")" = "$commit" ]; then return; fi
    rm -rf "sources/$name" "sources/.work/$name"
    mkdir -p "sources/$name" "sources/.work/$name"
    git -C "sources/.work/$name" init --quiet
    git -C "sources/.work/$name" config remote.origin.url "$url"
    filter=
    if [ -n "$paths" ]; then
        filter=--filter=blob:none
        git -C "sources/.work/$name" config extensions.partialClone origin
        git -C "sources/.work/$name" config remote.origin.promisor true
        git -C "sources/.work/$name" config core.sparseCheckout true
        # shellcheck disable=SC2086
        printf '/%s\n' $paths > "sources/.work/$name/.git/info/sparse-checkout"
    fi
    get() {
        git -C "$1" -c core.autocrlf=false fetch --quiet --depth 1 ${filter:+"$filter"} -- "$2" "$3"
        git -C "$1" -c core.autocrlf=false -c advice.detachedHead=false checkout --quiet FETCH_HEAD
        [ -n "$paths" ] || git -C "$1" submodule --quiet update --init --recursive --depth 1
        [ "$(git -C "$1" rev-parse HEAD)" = "$3" ] || { echo "prepare.sh: $2 gave another commit than $3" >&2; exit 4; }
    }
    get "sources/.work/$name" origin "$commit"
    filter=
    for held; do get "sources/.work/$name/${held%%=*}" origin "${held#*=}"; done
    [ -z "$repository" ] || mv "sources/.work/$name/.git" "sources/.work/$name/.git-repository"
    find "sources/.work/$name" -name .git -prune -exec rm -rf {} +
    tar -C "sources/.work/$name" -cf "sources/$name/tree.tar" .
    rm -rf "sources/.work/$name"
    printf '%s' "$commit" > "sources/$name/commit"
}
sdist() {       # NAME PROJECT VERSION [INDEX]: a source distribution of the index that pip is set up for, or of another
    mkdir -p "sources/$1"
    if [ -e "sources/$1/sha256" ] && checked "sources/$1" 2>/dev/null; then return; fi
    python3 sources/sdist.py "$2" "$3" "sources/$1" "${4:-}"
}
fetched() {     # FOLDER FILE URL: a file at an address, taken up again where it broke off
    mkdir -p "$1"
    if [ -e "$1/$2" ]; then return; fi
    curl --fail --location --silent --show-error --retry 3 --continue-at - --output "$1.part" -- "$3"
    mv "$1.part" "$1/$2"
}
hashed() {      # FILE sha256|sha512 HASH: it is the one
    if printf '%s  %s\n' "$3" "$1" | "${2}sum" --check --quiet; then return; fi
    rm -f "$1"
    echo "prepare.sh: $1 does not have the $2 $3" >&2
    exit 4
}
debian() {      # NAME SUITE ARCHITECTURE PACKAGE[=VERSION]: a source package of the archive that apt is set up for
    folder=$PWD/sources/$1
    mkdir -p "$folder"
    if [ -e "$folder/sha256" ] && checked "$folder" 2>/dev/null; then return; fi
    apt=$PWD/sources/.work/apt-$2-$3
    if [ ! -e "$apt/etc/apt/own.conf" ]; then
        mkdir -p sources/.work
        as_root=
        [ "$(id -u)" = 0 ] || as_root="unshare --map-root-user"
        $as_root mmdebstrap --simulate --mode=root --variant=custom "--architectures=$3" \
            --aptopt='Acquire::Check-Valid-Until "false"' "$2" "$apt"
        grep '^deb ' "$apt/etc/apt/sources.list" | while read -r _ rest; do echo "deb-src $rest"; done > "$apt/src"
        cat "$apt/src" >> "$apt/etc/apt/sources.list"
        mkdir -p "$apt/etc/apt/preferences.d" "$apt/var/cache/apt/archives/partial" "$apt/var/lib/apt/lists/partial"
        printf 'Dir "%s/";\nDir::State::status "%s/var/lib/dpkg/status";\nDir::Etc::TrustedParts "%s";\n%s\n' \
            "$apt" "$apt" /usr/share/keyrings/ 'APT::Sandbox::User "root"; Acquire::Check-Valid-Until "false";' \
            > "$apt/etc/apt/own.conf"
    fi
    apt-get --config-file="$apt/etc/apt/own.conf" update
    (cd "$folder" && apt-get --config-file="$apt/etc/apt/own.conf" source --download-only -- "$4")
}
unpacked() {    # NAME SUBDIR: the tree of a source, without the folder around it
    rm -rf "sources/.work/$1"
    mkdir -p "sources/.work/$1/all" "sources/.work/$1/debian"
    for file in "sources/$1"/*; do
        into=all
        case ${file##*/} in
            sha256 | given | commit | *.dsc | *.asc) continue ;;
            *.debian.tar.*) into=debian ;;
        esac
        case $file in
            *.zip) python3 -m zipfile -e "$file" "sources/.work/$1/$into" ;;
            *) tar -C "sources/.work/$1/$into" --no-same-owner -xf "$file" ;;
        esac
        case $file in
            *.tar.zst | */tree.tar) continue ;;     # packed without a folder around it
        esac
        if [ "$into" = all ] && [ "$(find "sources/.work/$1/all" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]; then
            mv "sources/.work/$1/all" "sources/.work/$1/outer"
            mv "sources/.work/$1/outer"/* "sources/.work/$1/all"
            rmdir "sources/.work/$1/outer"
        fi
    done
    mkdir -p trees
    tree=sources/.work/$1/all${2:+/$2}
}
series() {      # NAME PATCH ...: patches of a distribution's source package
    name=$1
    shift
    for patch; do
        patch --directory "$tree" -p1 --fuzz=0 --batch --forward --no-backup-if-mismatch \
            --input "$PWD/sources/.work/$name/debian/debian/patches/$patch"
    done
}
packaging() {   # NAME FOLDER ...: folders of a distribution's source package that the build needs
    name=$1
    shift
    mkdir -p "$tree/debian"
    for folder; do
        cp -a "$(readlink -f "sources/.work/$name/debian/debian/$folder")" "$tree/debian/$folder"
    done
}
packed() {      # NAME: the same tree, the same bytes
    tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' \
        --format=posix --pax-option=delete=atime,delete=ctime -C "$tree" -cf "trees/$1.tar" .
    rm -rf "sources/.work/$1"
    echo "trees/$1.tar is made"
}
wheels() {      # FOLDER PYTHON MACHINE: Python packages by hash
    [ -e "$1/requirements.lock" ] || return 0
    folder=$1 python=$2 machine=$3 minor=34
    shift 3
    while [ "$minor" -ge 17 ]; do      # pip takes each name by itself
        set -- "$@" --platform "manylinux_2_${minor}_$machine"
        minor=$((minor - 1))
    done
    python3 -m pip download --quiet --no-deps --require-hashes --only-binary :all: --implementation cp \
        --python-version "$python" "$@" --platform "linux_$machine" --dest "$folder" --requirement "$folder/requirements.lock"
}

