package fpga

import (
	"path"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// intelFPGA is the family of the cards with Intel's out-of-tree driver of
// before the Device Feature List, as of the Acceleration Stack 1.2 for the PAC
// with Arria 10. It has the same units and registers under other names, and its
// own files for temperature and power.
var intelFPGA = family{
	name: "intel-fpga",
	allow: slices.Concat(
		pciFiles, managerFiles,
		below("intel-fpga-fme.*", "bitstream_id", "bitstream_metadata", "pr/interface_id"),
		below("intel-fpga-fme.*/thermal_mgmt", "temperature", "threshold1", "threshold2", "threshold_trip", "threshold1_reached", "threshold2_reached"),
		below("intel-fpga-fme.*/power_mgmt", "consumed", "threshold1", "threshold2", "threshold1_status", "threshold2_status"),
		below("intel-fpga-fme.*/emif_mgmt", "complete", "calibration_failure"),
		below("intel-fpga-fme.*/errors", "fme-errors/errors", "pcie0_errors", "pcie1_errors", "nonfatal_errors", "catfatal_errors", "inject_error", "revision"),
		below("intel-fpga-port.*", "id", "afu_id", "power_state"),
		below("intel-fpga-port.*/errors", "errors", "revision"),
	),
	find: findIntelFPGA,
	open: func(e *env) card { return newDFLCard(e, &dflIntel) },
}

var dflIntel = dflDriver{
	dir: "fpga", prefix: "intel-fpga-",
	registers: []register{
		{"fme-errors/errors", "fme", "fme"},
		{"pcie0_errors", "pcie0", "pcie0"},
		{"pcie1_errors", "pcie1", "pcie1"},
		{"nonfatal_errors", "nonfatal", "nonfatal"},
		{"catfatal_errors", "fatal", "fatal"},
		{"inject_error", "inject", "inject"},
	},
	sensors: []sensorFile{
		{"thermal_mgmt/temperature", collector.TemperatureCelsius, []string{"FPGA"}},
		{"thermal_mgmt/threshold1", collector.TemperatureLimit, []string{"FPGA", "warning"}},
		{"thermal_mgmt/threshold2", collector.TemperatureLimit, []string{"FPGA", "critical"}},
		{"thermal_mgmt/threshold_trip", collector.TemperatureLimit, []string{"FPGA", "shutdown"}},
		{"thermal_mgmt/threshold1_reached", collector.FPGASensorAlarm, []string{"FPGA", "warning"}},
		{"thermal_mgmt/threshold2_reached", collector.FPGASensorAlarm, []string{"FPGA", "critical"}},
		{"power_mgmt/consumed", collector.PowerWatts, nil},
		{"power_mgmt/threshold1", collector.FPGAPowerThreshold, []string{"warning"}},
		{"power_mgmt/threshold2", collector.FPGAPowerThreshold, []string{"critical"}},
		{"power_mgmt/threshold1_status", collector.FPGASensorAlarm, []string{boardPower, "warning"}},
		{"power_mgmt/threshold2_status", collector.FPGASensorAlarm, []string{boardPower, "critical"}},
	},
}

func findIntelFPGA(fs *tree) (places []place, err error) {
	names, err := fs.Names("class/fpga")
	if err != nil && !absent(err) {
		return nil, err
	}
	for _, n := range names {
		at, err := fs.Target("class/fpga/" + n)
		dir := path.Dir(path.Dir(at))
		if err != nil || !strings.HasPrefix(n, "intel-fpga-dev.") || !sysfs.PCIAddress(path.Base(dir)) {
			continue
		}
		places = append(places, place{id: path.Base(dir), dir: dir, kubeIDs: dflIntel.kubeIDs(fs, dir)})
	}
	return places, nil
}
