#!/bin/sh
# Makes base/ROLE.tar, a root file system of exactly the packages in base/ROLE.sha256, without a network; the same
# packages give the same bytes.   usage: base/make-root.sh ROLE      (needs mmdebstrap, and root or /etc/subuid)
# Packages that are not in base/packages/ yet are downloaded first, from the archive that this machine is set up for.
set -eu
cd "$(dirname "$0")"
role=${1:?usage: base/make-root.sh ROLE}
case $role in
@CASES@
    *) echo "make-root.sh: there is no root to $role" >&2; exit 2 ;;
esac
if [ ! -e "$role.sha256" ]; then
    if [ -z "$given" ]; then
        echo "make-root.sh: pending: $pending" >&2
        echo "  give $variable='PACKAGE=VERSION ...', all of them, or export anew after an online \`rocwright lock\`" >&2
        exit 2
    fi
    printf '%s\n' "$given" | tr ' ' '\n' > "$role.packages"
fi

packages=$PWD/packages/$role
mkdir -p "$packages"
present() { [ -e "$role.sha256" ] && (cd "$packages" && sha256sum --check --quiet "../../$role.sha256") >/dev/null 2>&1; }
if ! present; then
    apt=$PWD/packages/.apt-$suite-$architecture
    if [ ! -e "$apt/etc/apt/own.conf" ]; then
        as_root=
        [ "$(id -u)" = 0 ] || as_root="unshare --map-root-user"
        $as_root mmdebstrap --simulate --mode=root --variant=custom "--architectures=$architecture" \
            --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$apt"
        mkdir -p "$apt/etc/apt/preferences.d" "$apt/var/cache/apt/archives/partial" "$apt/var/lib/apt/lists/partial"
        {
            printf 'Dir "%s/";\nDir::State::status "%s/var/lib/dpkg/status";\n' "$apt" "$apt"
            printf 'Dir::Etc::TrustedParts "/usr/share/keyrings/";\n'
            printf 'APT::Architecture "%s";\nAPT::Architectures { "%s"; };\n' "$architecture" "$architecture"
            printf 'APT::Sandbox::User "root";\nAcquire::Check-Valid-Until "false";\n'
        } > "$apt/etc/apt/own.conf"
    fi
    apt-get --config-file="$apt/etc/apt/own.conf" update
    (cd "$packages" && xargs apt-get --config-file="$apt/etc/apt/own.conf" download -- < "../../$role.packages")
    for file in "$packages"/*_*%3a*_*.deb; do    # the archive's own names leave the epoch out
        [ -e "$file" ] || continue
        name=${file##*/}
        mv "$file" "$packages/${name%%_*}_${name#*%3a}"
    done
    [ ! -e "$role.sha256" ] || (cd "$packages" && sha256sum --check --quiet "../../$role.sha256")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/repository" "$work/tmp"
names=
LC_ALL=C
export LC_ALL
if [ ! -e "$role.sha256" ]; then (cd "$packages" && sha256sum -- *.deb) > "$work/sums"; else cp "$role.sha256" "$work/sums"; fi
while read -r sum name; do
    cp -l "$packages/$name" "$work/repository/" 2>/dev/null || cp "$packages/$name" "$work/repository/"
    {
        dpkg-deb --field "$packages/$name"
        printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$name" "$(stat -c %s "$packages/$name")" "$sum"
    } >> "$work/repository/Packages"
    names=$names,$(dpkg-deb --field "$packages/$name" Package)
done < "$work/sums"
names=$(printf '%s' "${names#,}" | tr ',' '\n' | sort | tr '\n' ',')
printf 'Suite: %s\nCodename: %s\nDate: %s\nSHA256:\n %s %s Packages\n' "$suite" "$suite" \
    "$(date -u -R -d '@@EPOCH@')" "$(sha256sum < "$work/repository/Packages" | cut -d ' ' -f 1)" \
    "$(stat -c %s "$work/repository/Packages")" > "$work/repository/Release"

users=
[ "$(id -u)" = 0 ] || users="--map-auto --map-root-user"
# shellcheck disable=SC2016,SC2086
env -i @ENVIRONMENT@ HOME="$work/tmp" TMPDIR="$work/tmp" unshare $users @ALONE@ -- \
    @MMDEBSTRAP@ > "$role.tar.part"
mv "$role.tar.part" "$role.tar"
echo "base/$role.tar is made"
