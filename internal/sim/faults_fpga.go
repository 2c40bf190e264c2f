package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

var cardArg = Arg{Name: "card", Help: "FPGA by number, by (part of) the name of its tree, or by address"}

// fpgaFaults are faults of FPGA cards.
var fpgaFaults = []Fault{
	{
		Name: "fpga-reconfigure", Help: "load another image; returns when it is loaded", apply: onCard(reconfigure), Args: []Arg{cardArg},
		Flags: []Flag{
			{Name: "afu", Help: "DFL: the accelerator function, 32 hexadecimal digits"},
			{Name: "uuid", Help: "XRT: the xclbin"},
			{Name: "firmware", Help: "fpga_manager: the bit file"},
			{Name: "duration", Help: "how long it takes", Default: "2s"},
			{Name: "fail", Help: "it fails", Default: "false"},
		},
	},
	{Name: "fpga-firewall", Help: "the firewall of an XRT card trips", apply: onCard(tripFirewall), Args: []Arg{cardArg}},
	{
		Name: "fpga-error", Help: "latch bits of the error register of a DFL card's port", apply: onCard(latchErrors), Args: []Arg{cardArg, {Name: "bits", Help: "e.g. 0x80"}},
	},
	{
		Name: "file", Help: "a file of a card's driver has another text", apply: writeFile,
		Args: []Arg{{Name: "path", Help: "/sys/…, with patterns as in hwmon*"}, {Name: "text", Help: "its lines, with \\n between them", Rest: true}},
	},
	{Name: "fpga-temperature", Help: "set the fabric's temperature", apply: onCard(heat), Args: []Arg{cardArg, {Name: "celsius", Help: "degrees"}}},
}

// onCard applies f to the card of the argument card.
func onCard(f func(*State, *faketree.Tree, card, input) error) func(*State, input) error {
	return func(s *State, in input) error {
		c, tree, err := s.card(in["card"])
		if err != nil {
			return err
		}
		if c.kind == "amd" {
			return fmt.Errorf("%s is an AMD GPU, and the fault is one of an FPGA", c.at)
		}
		return f(s, tree, c, in)
	}
}

// writeFile changes the text of a file of the tree.
func writeFile(s *State, in input) error {
	tree, err := s.hardware()
	if err != nil {
		return err
	}
	file := first(tree, "/sys", strings.TrimPrefix(in["path"], "/sys/"))
	if _, ok := tree.Get(file); !ok {
		return fmt.Errorf("path: want a file of the machine, found %q", in["path"])
	}
	tree.Set(file, strings.ReplaceAll(in["text"], `\n`, "\n")+"\n")
	return nil
}

// tripFirewall trips the AXI firewall of an XRT card.
func tripFirewall(s *State, t *faketree.Tree, c card, _ input) error {
	if c.kind != "xrt" || c.mgmt == "" {
		return fmt.Errorf("%s has no simulated firewall: want an XRT card with its management function", c.at)
	}
	dir := first(t, c.mgmt, "firewall.*")
	now := s.integer("epoch")/int64(time.Second) + int64(s.now())
	for file, value := range map[string]string{
		"level": "0", "status": "524288", "detected_level": "0", "detected_status": "524288", "detected_time": strconv.FormatInt(now, 10),
	} {
		t.Set(dir+"/"+file, value+"\n")
	}
	return nil
}

// latchErrors sets bits of the error register of a DFL card's port.
func latchErrors(_ *State, t *faketree.Tree, c card, in input) error {
	bits, err := in.whole("bits")
	if err != nil {
		return err
	}
	file := first(t, c.dir, "fpga_region/*/dfl-port.*/errors/errors")
	if file == "" {
		return fmt.Errorf("%s has no error register of a port", c.at)
	}
	text, _ := t.Get(file)
	old, _ := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	t.Set(file, fmt.Sprintf("0x%x\n", old|bits))
	return nil
}

// heat sets the temperature of a card's fabric, where it is reported.
func heat(_ *State, t *faketree.Tree, c card, in input) error {
	degrees, err := strconv.ParseFloat(in["celsius"], 64)
	if err != nil || degrees < -273.15 || degrees > 1000 {
		return fmt.Errorf("celsius: want a temperature, found %q", in["celsius"])
	}
	milli := strconv.Itoa(int(degrees*1000)) + "\n"
	found := false
	put := func(file, text string) {
		if t.Exists(file) {
			t.Set(file, text)
			found = true
		}
	}
	for _, chip := range t.Names("/sys/class/hwmon") {
		dir, _ := t.Real("/sys/class/hwmon/" + chip)
		if !strings.HasPrefix(dir, c.dir+"/") && (c.mgmt == "" || !strings.HasPrefix(dir, c.mgmt+"/")) {
			continue
		}
		for _, sensor := range fabricSensors(t, dir) {
			put(dir+"/"+sensor+"_input", milli)
			raiseAlarms(t, dir+"/"+sensor, int(degrees*1000))
		}
	}
	if c.kind == "xrt" {
		whole := strconv.Itoa(int(degrees)) + "\n"
		for _, dir := range []string{c.dir, c.mgmt} {
			put(first(t, dir, "xmc.*")+"/xmc_fpga_temp", whole)
		}
	}
	if !found {
		return fmt.Errorf("%s reports no temperature of its fabric", c.at)
	}
	return nil
}

// fabricSensors returns the temperatures of the FPGA by their labels; of the
// fabric's chip the only one, unless it is a dummy.
func fabricSensors(t *faketree.Tree, dir string) []string {
	var out []string
	for _, name := range t.Names(dir) {
		sensor, isLabel := strings.CutSuffix(name, "_label")
		text, _ := t.Get(dir + "/" + name)
		text = strings.ToUpper(text)
		if isLabel && strings.HasPrefix(sensor, "temp") &&
			(strings.HasPrefix(text, "FPGA TEMP") || strings.HasPrefix(text, "FPGA DIE") || strings.HasPrefix(text, "FPGA FABRIC")) {
			out = append(out, sensor)
		}
	}
	name, _ := t.Get(dir + "/name")
	if input, _ := t.Get(dir + "/temp1_input"); name == "xclmgmt_sysmon\n" || name == "dfl_fme_thermal\n" && input != "0\n" {
		out = append(out, "temp1")
	}
	return out
}

// raiseAlarms sets the alarms of a temperature above its thresholds.
func raiseAlarms(t *faketree.Tree, sensor string, milli int) {
	for _, of := range []string{"max", "crit"} {
		text, ok := t.Get(sensor + "_" + of)
		limit, err := strconv.Atoi(strings.TrimSpace(text))
		if !ok || err != nil || !t.Exists(sensor+"_"+of+"_alarm") {
			continue
		}
		alarm := "0\n"
		if milli >= limit {
			alarm = "1\n"
		}
		t.Set(sensor+"_"+of+"_alarm", alarm)
	}
}
