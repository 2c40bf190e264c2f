#!/usr/bin/env bash
# Finding: kingpin expands an argument that begins with @ to the lines of a file of that name
# wherever it stands, so `--label @x` and `--label=@x` are not the same: the first reads the
# file x and takes its lines as the arguments, the second gives the value "@x". There is no
# option of an application that turns it off but the package's variable EnableFileExpansion,
# which is for all applications of the process.
# Expected: a flag's value means the same in both forms.
# Version: github.com/alecthomas/kingpin/v2 v2.4.0. Output seen is below, as the script requires it.
set -euo pipefail
version=v2.4.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'G'
package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"
)

func main() {
	for _, args := range [][]string{{"--label=@team"}, {"--label", "@team"}} {
		app := kingpin.New("app", "")
		label := app.Flag("label", "").String()
		extra := app.Flag("extra", "").Bool()
		_, err := app.Parse(args)
		fmt.Println(*label, *extra, err)
	}
}
G
printf 'blue\n--extra\n' > team
printf 'module finding\n\ngo 1.25\n\nrequire github.com/alecthomas/kingpin/v2 %s\n' "$version" > go.mod
seen=$(GOFLAGS=-mod=mod go run . 2>/dev/null)
[ "$seen" = $'@team false <nil>\nblue true <nil>' ] || { echo "changed: $seen"; exit 1; }
echo "as found: --label=@team is the text @team, --label @team the lines of the file team"
