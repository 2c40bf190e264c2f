package sim

import (
	"strings"
	"testing"
)

// refused injects faults; the error of each contains the text, "" for none.
func refused(t *testing.T, state string, faults map[string]string) {
	t.Helper()
	for words, want := range faults {
		err := inject(state, words)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}

// Faults that a machine cannot have, or that would do nothing, are refused.
func TestRefusedFaults(t *testing.T) {
	for scenario, faults := range map[string]map[string]string{
		"h100-8": {
			"pod-start training/llm-0":               "runs already",
			"pod-start a/b some-id":                  "its resource is unknown",
			"pod-end nobody":                         `0 pods are "nobody"; the pods are kube-system/`,
			"pod-end":                                "the argument POD is missing",
			"process-start 21001 0":                  "is there already, and not this pod's",
			"process-start 5 4":                      "sliced by MIG; name one of its MIG devices, such as 4/0",
			"process-end 5":                          "no process 5; there are 21001",
			"device-unhealthy gpu:9":                 `no device "9"`,
			"plugin-down amd.com/gpu":                `no device plugin offers "amd.com/gpu"; offered are nvidia.com/gpu, `,
			"pod-evict kube-apiserver-node --xid=79": "has no GPU that could report",
			"error nvmlDeviceGetHandleByIndex_v2 NO_PERMISSION 3":   "",
			"error nvmlDeviceGetHandleByIndex_v2 NO_PERMISSION 4/0": "whole GPU",
			"error nvmlSystemGetDriverVersion NO_PERMISSION 3":      "leave DEVICE out",
			"hang all --call=dcgmInit":                              "want the name of an NVML function",
			"xid 99999999999 1":                                     "from 1 to 999",
		},
		"hgx-nvswitch": {
			"dcgm-hang --call=nvmlInit":                  `want the name of a function of libdcgm, found "nvmlInit"`,
			"dcgm-error dcgmInit 7":                      "want -1 to -99 or one of BADPARAM, ",
			"dcgm-engine gone":                           "state: want one of up, down, restart, disconnect",
			"dcgm-part switch:9 temperature 1":           `want switch:N or cpu:N that the scenario has, found "switch:9"`,
			"dcgm-part switch:0 speed 1":                 `unknown key "speed" of a switch; want one of fatal_error, link.crc_errors, `,
			"dcgm-part switch:0 link.status 0 --link=64": `link: switch:0 has 64, found "64"`,
		},
		"mixed-node": {
			"aer 1 fatal --name=RxErr":       `name: want one of Undefined, DLP, `,
			"fpga-error u250 1":              `0000:5e:00.1 has no error register of a port`,
			"fpga-firewall n6001":            `0000:b1:00.0 has no simulated firewall`,
			"fpga-reconfigure n6001 --afu=1": `afu: want 32 hexadecimal digits, found "1"`,
			"amd-hang n3000":                 "is no AMD GPU",
		},
		"a100": { // outside Kubernetes
			"pod-start a/b": "no kubelet", "kubelet-restart": "no kubelet", "device-unhealthy 0": "no kubelet",
		},
		"mi300x-8": {
			"amd-ecc corrected 1 --block=l2": "does not count corrected errors of the block l2",
			"amd-hang 1 --ends=well":         `ends: want one of soft, queue, reset, failed, none, found "well"`,
			"amd-xgmi 0 down 1":              "has no link 0",
			"amd-sleep 1":                    `never sleeps: its power/control is "on"`,
			"xid 79 1":                       "xid is a fault of NVIDIA GPUs, and this machine has none",
			"fpga-temperature 1 99":          "is an AMD GPU, and the fault is one of an FPGA",
		},
		"radeon": {
			"amd-retire 1 0": "has no list of retired pages",
		},
		"t4": {"device-file 0 missing": "--dev"},
	} {
		t.Run(scenario, func(t *testing.T) {
			state, _ := installed(t, scenario)
			refused(t, state, faults)
		})
	}
}
