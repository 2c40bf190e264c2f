// Command sbom writes the bill of materials of a program, CycloneDX in JSON,
// from what the Go linker wrote into it: the modules it links, with their
// versions and checksums, and the toolchain. The same program gives the same
// bytes. What it loads at run time, the C library and a vendor's, is not part
// of it.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "", "version of the program, where the linker knew none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: sbom [-version VERSION] PROGRAM")
	}
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	if info.Main.Version == "(devel)" {
		info.Main.Version = *version
	}
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(materials(info))
}
