// Command summary turns the output of go test -json into what go test prints:
// a line for each package and the output of what failed. With -total it writes
// a line with the number of tests, subtests among them, to a file, and with
// -add counts what such a line in that file says, too. With -again
// it runs a few failed tests once more, alone: one that passes then failed for
// want of a quiet machine, is named as such in the closing line, and does not
// fail the run. Its exit status is the verdict.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
}

func main() {
	total := flag.String("total", "", "file for the closing line")
	add := flag.Bool("add", false, "count what the file of the closing line says, too")
	again := flag.Int("again", 0, "run up to so many failed tests once more, alone")
	flag.Parse()
	s := summary{failed: map[string]int{}, count: map[string]int{}}
	err := s.summarize(bufio.NewReader(os.Stdin))
	if err == nil && len(s.count) == 0 {
		err = errors.New("no test has run")
	}
	ok := err == nil && len(s.failed) == 0 && !s.broken
	if err == nil && !ok && !s.broken && len(s.failed) <= *again {
		ok = s.again()
	}
	if err == nil && *add {
		err = s.add(*total)
	}
	line := s.line()
	fmt.Println(line)
	if err == nil && *total != "" {
		err = os.WriteFile(*total, []byte(line+"\n"), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type summary struct {
	count  map[string]int
	failed map[string]int // by package and top-level test, subtests among them
	second []string       // of those, the ones that passed alone
	broken bool           // a package failed otherwise: build, panic, leak
}

// line is the closing line.
func (s *summary) line() string {
	line := fmt.Sprintf(counted, s.count["pass"], s.count["fail"], s.count["skip"])
	if len(s.second) > 0 {
		line += passedAlone + strings.Join(s.second, ", ")
	}
	return line
}

// The closing line, and what it goes on with where there is something to say.
const (
	counted     = "%d passed, %d failed, %d skipped"
	passedAlone = "; failed beside others and passed alone: "
)

// add counts what the closing line in a file says.
func (s *summary) add(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	counts, second, found := strings.Cut(strings.TrimSpace(string(data)), passedAlone)
	var passed, failed, skipped int
	if _, err := fmt.Sscanf(counts, counted, &passed, &failed, &skipped); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.count["pass"] += passed
	s.count["fail"] += failed
	s.count["skip"] += skipped
	if found {
		s.second = append(strings.Split(second, ", "), s.second...)
	}
	return nil
}

// again runs each failed test alone and reports whether all pass.
func (s *summary) again() bool {
	ok := true
	for name, n := range s.failed {
		pkg, test, _ := strings.Cut(name, " ")
		fmt.Printf("once more, alone: %s in %s\n", test, pkg)
		out, err := exec.Command("go", "test", "-race", "-count=1", "-timeout=15m", "-run", "^"+test+"$", pkg).CombinedOutput()
		if err != nil {
			fmt.Printf("%s", out)
			ok = false
			continue
		}
		s.second = append(s.second, pkg+"."+test)
		s.count["fail"] -= n
		s.count["pass"] += n
	}
	return ok
}

func (s *summary) summarize(in *bufio.Reader) error {
	output := map[string][]string{}
	tests := map[string]bool{} // packages of which a test failed
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
			s.count[e.Action]++
			if e.Action == "fail" {
				top, _, _ := strings.Cut(e.Test, "/")
				s.failed[e.Package+" "+top]++
				tests[e.Package] = true
			}
			if e.Action != "pass" {
				for _, o := range output[name] {
					fmt.Print(o)
				}
			}
			delete(output, name)
		case e.Action == "build-fail":
			s.broken = true
		case e.Action == "fail":
			// Failed tests account for it, unless the package did not get
			// through all of them.
			s.broken = s.broken || !tests[e.Package]
			// The package ended in the middle of tests: a panic or a time-out.
			for name, lines := range output {
				if !strings.HasPrefix(name, e.Package+" ") {
					continue
				}
				fmt.Println("unfinished:", name)
				s.broken = true
				for _, o := range lines {
					fmt.Print(o)
				}
				delete(output, name)
			}
		}
	}
	return scan.Err()
}
