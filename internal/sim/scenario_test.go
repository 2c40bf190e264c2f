package sim

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var fixtures = os.DirFS("../../fixtures")

// strictness compiles texts of scenarios; the error of each contains the other
// text of its row.
func strictness(t *testing.T, head string, rows [][2]string) {
	t.Helper()
	for _, row := range rows {
		if _, err := parsed(head + row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%q:\n got %v\nwant %s", row[0], err, row[1])
		}
	}
}

func TestStrictness(t *testing.T) {
	const twoMistakes = "nope: 1\ndescription: a\ngpus:\n  - bord: t4\n"
	strictness(t, "", [][2]string{
		{twoMistakes, "x.yaml:1: nope: field nope not found"},
		{twoMistakes, "x.yaml:4: gpus[0].bord: field bord not found"},
		{"", "x.yaml:1: the file is empty"},
		{"gpus: []", "x.yaml:1: the key description is missing"},
		{"description: a\ndescription: b", `x.yaml:2: description: mapping key "description" already defined at line 1`},
		{"description: [a]", "x.yaml:1: description: cannot unmarshal !!seq into string"},
		{"description: a\ngpus: 3", "x.yaml:2: gpus: cannot unmarshal !!int `3` into []sim.gpuEntry"},
		{"description: a\ngpus:\n  - count: 2", "x.yaml:3: gpus[0]: the key board is missing"},
		{"description: a\ngpus:\n  - board: t4\n    count: 0", "x.yaml:4: gpus[0].count: want a whole number from 1 to 64, found 0"},
		{"description: a\ngpus:\n  - board: t4\n    load: lots", "x.yaml:4: gpus[0].load: want a load from 0 to 1"},
		{"description: a\ngpus:\n  - board: t4\n    values:\n      temperature: 3", `x.yaml:5: gpus[0].values.temperature: unknown key "temperature"; want one of temperature.gpu, temperature.memory`},
		{"description: a\ngpus:\n  - board: t4\n    values:\n      energy: sine:1", `x.yaml:5: gpus[0].values.energy: "sine:1" has 1 numbers: want `},
		{"description: a\ngpus:\n  - board: t4\n    values:\n      serial: error:OOPS", `x.yaml:5: gpus[0].values.serial: unknown return code "OOPS"`},
		{"description: a\ngpus:\n  - board: t4\n    processes: [{name: a}]", "x.yaml:4: gpus[0].processes[0].pid: want a whole number from 1"},
		{"description: a\ngpus:\n  - board: t5", `x.yaml:3: gpus[0]: no board "t5"; want one of a100-sxm4-40gb, `},
		{"description: a\ngpus:\n  - board: h100-sxm5-80gb\n    mig: [5g.50gb]", `x.yaml:3: gpus[0]: gpu 0: unknown MIG profile "5g.50gb": want one of 1g.10gb, `},
		{"description: a\ngpus:\n  - board: h100-sxm5-80gb\n    mig: [7g.80gb, 1g.10gb]", "no room for 1g.10gb in the layout 7g.80gb,1g.10gb"},
		{"description: a\ndriver: {state: odd}", `x.yaml:2: driver.state: want one of loaded, unloaded, mismatch, found "odd"`},
		{"description: a\nmissing_symbols: [foo]", `x.yaml:2: missing_symbols[0]: want the name of a function of NVML or DCGM, found "foo"`},
		{"description: a\ngpus: [{board: t4}]\ninject:\n  - lost 7", `x.yaml:4: inject[0]: no device "7"; the devices are:`},
		{"description: a\ninject:\n  - explode", `x.yaml:3: inject[0]: unknown fault "explode"; want one of xid, event, operational-event, lost, `},
		{"description: a\ninject:\n  - xid 79 0 --at=3", `x.yaml:3: inject[0]: xid has no flag --at`},
		{"description: a\ngpus: [{board: t4}]\ninject:\n  - xid", `x.yaml:4: inject[0]: xid: the argument CODE is missing`},
		{"description: a\nswitches: [{links: 300}]", "x.yaml:2: switches[0].links: want a whole number from 0 to 256, found 300"},
		{"description: a\nswitches: [{values: {speed: 1}}]", "x.yaml:2: switches[0].values.speed: unknown key \"speed\" of a switch; want one of "},
		{"description: a\ntrees: [nothing]", `x.yaml:2: trees[0]: no tree "nothing"; want one of aws-f2, intel-d5005-dfl, `},
		{"description: a\ntrees: [zynqmp-fpga-manager, zynqmp-fpga-manager]", `x.yaml:2: trees[1]: both trees have bus/platform/devices/ffa50000.ams, `},
	})
}

// keys.go must have the keys of the C side.
func TestKeysAreThoseOfTheLibrary(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/nvml/keys.def")
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile("../../fixtures/nvml/state.h")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^\tQUIRK\(\w+, "([^"]+)"\)`).FindAllSubmatch(header, -1) {
		got["QUIRK"] = append(got["QUIRK"], string(m[1]))
	}
	for _, m := range regexp.MustCompile(`(?m)^(VALUE|TEXT|LINK|MIG)\(\w+, "([^"]+)"\)`).FindAllStringSubmatch(string(data), -1) {
		got[m[1]] = append(got[m[1]], m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^ECC_KEYS\(\w+, "(\w+)", \w+, "(\w+)"\)`).FindAllStringSubmatch(string(data), -1) {
		for _, location := range locations {
			got["VALUE"] = append(got["VALUE"], "ecc."+m[1]+"."+m[2]+"."+location)
		}
	}
	for kind, want := range map[string][]string{"VALUE": valueKeys, "TEXT": textKeys, "LINK": linkKeys, "MIG": migKeys, "QUIRK": quirks} {
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got[kind]))); diff != "" {
			t.Errorf("%s: -keys.go +keys.def:\n%s", kind, diff)
		}
	}
}

// parsed compiles the text of a scenario.
func parsed(text string) (*State, error) {
	sc, err := ParseScenario("x.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return sc.Compile(fixtures, Options{})
}

func compiled(t testing.TB, name string) *State {
	t.Helper()
	sc, err := LoadScenario(fixtures, name)
	if err != nil {
		t.Fatal(err)
	}
	at := 10.0
	s, err := sc.Compile(fixtures, Options{Frozen: &at})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Edits from many at once are all there at the end.
func TestUpdateLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := compiled(t, "h100-8").Install(path); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 8 {
		go func() {
			var all error
			for range 5 {
				all = errors.Join(all, Update(path, func(s *State) error { return s.Inject([]string{"xid", "13", "0"}) }))
			}
			errs <- all
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s, err := Read(path)
	if err != nil || len(s.keys("event.")) != 40 {
		t.Errorf("%d events of 40, %v", len(s.keys("event.")), err)
	}
}
