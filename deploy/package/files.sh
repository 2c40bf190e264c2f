#!/bin/sh
# files.sh PROGRAM OUT: writes the files of the packages that are generated into the
# folder OUT. PROGRAM is an accel-exporter that runs on this machine.
# SOURCE_DATE_EPOCH is the date of a release that CHANGELOG.md has without one.
set -eu
program=$1 out=$2
cd "$(dirname "$0")/../.."
rm -rf "$out/man" && mkdir -p "$out/man"

# page NAME [COMMAND]: a man page, with a heading that man and apropos find.
page() {
  name=$1
  shift
  { printf '.TH "%s" 1\n.SH NAME\n%s \\- health and use of the accelerators of this node\n' "$name" "$name"
    "$program" "$@" --help-man | sed -n '/^\.SH "SYNOPSIS"/,$p'
  } | gzip -9n > "$out/man/$name.1.gz"
}
page accel-exporter
for command in $("$program" --completion-bash ''); do
  case $command in help | version) continue ;; esac
  page "accel-exporter-$command" "$command"
done
"$program" --completion-script-bash > "$out/completion.bash"
"$program" --completion-script-zsh > "$out/completion.zsh"

# Administrators install in /usr/local, packages do not. The comment before the first
# section describes an installation by hand.
sed -e '/^\[Unit\]$/,$!d' -e 's,/usr/local/bin/,/usr/bin/,' deploy/systemd/accel-exporter.service > "$out/accel-exporter.service"

# Debian's format: one section per release, each entry wrapped.
awk -v version="$(cat VERSION)" -v maintainer="$(sed -n 's/^maintainer: //p' deploy/package/nfpm.yml)" \
  -v date="$(LC_ALL=C date -Ru -d "@$SOURCE_DATE_EPOCH")" '
  function end() { if (open) printf "\n -- %s  %s\n\n", maintainer, date }
  /^## / { end(); open = 1; printf "accel-exporter (%s) unstable; urgency=medium\n\n", $2 == "Unreleased" ? version : $2 }
  /^- /  { line = "  *"
           for (i = 2; i <= NF; i++) {
             if (length(line) + length($i) > 78) { print line; line = "   " }
             line = line " " $i
           }
           print line }
  END { end() }' CHANGELOG.md | gzip -9n > "$out/changelog.gz"
