// Command summary turns the output of go test -json into what go test prints:
// a line for each package and the output of what failed. With -total it writes
// a line with the number of tests, subtests among them, to a file.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
}

func main() {
	total := flag.String("total", "", "file for the closing line")
	flag.Parse()
	line, err := summarize(bufio.NewReader(os.Stdin))
	fmt.Println(line)
	if err == nil && *total != "" {
		err = os.WriteFile(*total, []byte(line+"\n"), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

func summarize(in *bufio.Reader) (string, error) {
	output := map[string][]string{}
	count := map[string]int{}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if json.Unmarshal(scan.Bytes(), &e) != nil {
			fmt.Println(scan.Text()) // make and the compiler speak plainly
			continue
		}
		name := e.Package + " " + e.Test
		switch {
		case e.Action == "build-output" || e.Action == "output" && e.Test == "":
			fmt.Print(e.Output)
		case e.Action == "output":
			output[name] = append(output[name], e.Output)
		case e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			count[e.Action]++
			if e.Action != "pass" {
				for _, o := range output[name] {
					fmt.Print(o)
				}
			}
			delete(output, name)
		case e.Action == "fail":
			// The package ended in the middle of tests: a panic or a time-out.
			for name, lines := range output {
				if !strings.HasPrefix(name, e.Package+" ") {
					continue
				}
				fmt.Println("unfinished:", name)
				for _, o := range lines {
					fmt.Print(o)
				}
				delete(output, name)
			}
		}
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped", count["pass"], count["fail"], count["skip"]), scan.Err()
}
