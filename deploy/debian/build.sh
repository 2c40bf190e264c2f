#!/bin/sh
# build.sh PROGRAMS OUT ARCH: a Debian package of the programs in the folder
# PROGRAMS, written to OUT/accel-exporter_VERSION_ARCH.deb. With
# SOURCE_DATE_EPOCH the same bytes each time.
set -eu
# dpkg-deb refuses one that is empty.
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(date +%s)}"
umask 022
programs=$1 out=$2 arch=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(cat "$root/VERSION")
tree=$(mktemp -d)
chmod 0755 "$tree"
trap 'rm -rf "$tree"' EXIT INT TERM
doc=$tree/usr/share/doc/accel-exporter
etc=$tree/etc/default
unit=$tree/lib/systemd/system

mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/share/accel-exporter/rules" "$tree/usr/share/accel-exporter/dashboards" "$tree/etc/accel-exporter" "$doc/examples" "$etc" "$unit"
install -m 0755 "$programs/accel-exporter" "$tree/usr/bin/"
install -m 0644 "$root"/rules/*.yaml "$tree/usr/share/accel-exporter/rules/"
install -m 0644 "$root"/dashboards/*.json "$tree/usr/share/accel-exporter/dashboards/"
install -m 0644 "$root/deploy/systemd/accel-exporter.default" "$etc/accel-exporter"
install -m 0644 "$root"/deploy/systemd/*.conf "$root/deploy/prometheus/alertmanager.yml" "$doc/examples/"
install -m 0644 "$root/deploy/debian/copyright" "$root/NOTICE" "$doc/"
install -m 0644 "$programs/accel-exporter.third-party-licenses" "$doc/third-party-licenses"
gzip -9n < "$root/CHANGELOG.md" > "$doc/changelog.gz"
# What is installed by hand is in /usr/local; what dpkg installs is not. Before
# the first section stands how to do it by hand.
sed -e '/^\[Unit\]$/,$!d' -e 's,/usr/local/bin/,/usr/bin/,' \
  "$root/deploy/systemd/accel-exporter.service" > "$unit/accel-exporter.service"
chmod 0644 "$doc/changelog.gz" "$unit/accel-exporter.service"

for script in postinst prerm postrm; do
  install -m 0755 "$root/deploy/debian/$script" "$tree/DEBIAN/"
done
echo /etc/default/accel-exporter > "$tree/DEBIAN/conffiles"
size=$(du -sk --apparent-size --exclude=DEBIAN "$tree" | cut -f1)
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" "$root/deploy/debian/control" > "$tree/DEBIAN/control"
(cd "$tree" && find usr lib etc -type f ! -path 'etc/*' -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Z"${COMPRESSION:-xz}" --build "$tree" "$out/accel-exporter_${version}_$arch.deb"
