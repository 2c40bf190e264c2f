package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// onCard applies f to the card of the argument card.
func onCard(f func(*State, *faketree.Tree, card, input) error) func(*State, input) error {
	return func(s *State, in input) error {
		c, m, err := s.card(in["card"])
		if err != nil {
			return err
		}
		if c.kind == "amd" {
			return fmt.Errorf("%s is an AMD GPU, and the fault is one of an FPGA", c.at)
		}
		return f(s, m.tree, c, in)
	}
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

// latchErrors sets bits of an error register of a DFL card; XRT and the generic
// manager have none.
func latchErrors(_ *State, t *faketree.Tree, c card, in input) error {
	bits, err := in.integer("bits")
	if err != nil {
		return err
	}
	registers := map[string]string{
		"port": "fpga_region/*/dfl-port.*/errors/errors", "fme": "fpga_region/*/dfl-fme.*/errors/fme_errors",
		"pcie0": "fpga_region/*/dfl-fme.*/errors/pcie0_errors", "pcie1": "fpga_region/*/dfl-fme.*/errors/pcie1_errors",
		"nonfatal": "fpga_region/*/dfl-fme.*/errors/nonfatal_errors", "catfatal": "fpga_region/*/dfl-fme.*/errors/catfatal_errors",
	}
	pattern, ok := registers[in["register"]]
	if !ok {
		return fmt.Errorf("register: want one of %s, found %q", strings.Join(slices.Sorted(maps.Keys(registers)), ", "), in["register"])
	}
	file := first(t, c.dir, pattern)
	if file == "" {
		return fmt.Errorf("%s has no register %s", c.at, in["register"])
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
	if iio := "/sys/bus/iio/devices/iio:device0"; c.kind == "manager" && t.Exists(iio+"/in_temp20_raw") {
		// raw is (temperature / scale) - offset, in thousandths.
		put(iio+"/in_temp20_raw", strconv.Itoa(int(degrees*1000/7.771514892)+36058)+"\n")
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
