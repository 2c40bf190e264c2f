package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// injectCallFault records faults that the library applies at the start of a
// call.
func injectCallFault(kind string) func(*State, input) error {
	return func(s *State, in input) error {
		rec := "kind=" + kind
		if in["call"] != "" {
			if !strings.HasPrefix(in["call"], "nvml") {
				return fmt.Errorf("call: want the name of an NVML function, found %q", in["call"])
			}
			rec += " call=" + in["call"]
		}
		span, err := in.span()
		if err != nil {
			return err
		}
		rec += span
		if in["code"] != "" {
			code, err := ParseReturn(in["code"])
			if err != nil {
				return err
			}
			rec += fmt.Sprintf(" code=%d", code)
		}
		if in["device"] == "" || in["device"] == "all" {
			s.addFault(rec)
			return nil
		}
		return s.onGPUs(in, func(d device) error {
			if err := filterable(in["call"], d); err != nil {
				return err
			}
			s.addFault(fmt.Sprintf("%s gpu=%d mig=%d", rec, d.gpu, d.mig))
			return nil
		})
	}
}

// span returns the fields of a fault's end time and of its delay.
func (in input) span() (string, error) {
	duration, err := in.duration("for")
	if err != nil {
		return "", err
	}
	delay, err := in.duration("delay")
	if err != nil {
		return "", err
	}
	until := ""
	if duration > 0 {
		until = fmt.Sprintf(" until=%d", time.Now().Add(duration).UnixNano())
	}
	return until + fmt.Sprintf(" delay=%d", delay.Nanoseconds()), nil
}

// systemCalls are the prefixes of the functions without a device.
var systemCalls = []string{
	"nvmlInit", "nvmlShutdown", "nvmlErrorString", "nvmlSystem", "nvmlEventSet", "nvmlDeviceGetCount",
	"nvmlGetExcludedDevice", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlUnit",
}

// filterable rejects a fault that would never apply: a device for a call
// without one.
func filterable(call string, d device) error {
	if d.mig >= 0 && strings.HasPrefix(call, "nvmlDeviceGetHandleBy") {
		return fmt.Errorf("call: %s looks up a whole GPU; name GPU %d, not its MIG device", call, d.gpu)
	}
	for _, prefix := range systemCalls {
		if strings.HasPrefix(call, prefix) {
			return fmt.Errorf("call: %s has no device to go by; leave DEVICE out or give all, "+
				"or name a function that takes a device or looks one up (nvmlDeviceGetHandleBy...)", call)
		}
	}
	return nil
}

func (s *State) addFault(rec string) {
	n := s.integer("fault_seq") + 1
	s.Set("fault_seq", strconv.FormatInt(n, 10))
	s.Set(fmt.Sprintf("fault.%d", n), rec)
}

func injectCrash(s *State, in input) error {
	how, err := in.one("how", []string{"signal", "dereference"})
	in["code"] = strconv.Itoa(how)
	if err != nil {
		return err
	}
	return injectCallFault("crash")(s, in)
}

func injectInitHang(s *State, in input) error {
	in["call"] = "nvmlInit"
	return injectCallFault("hang")(s, in)
}

func injectNotSupported(s *State, in input) error {
	in["code"] = "NOT_SUPPORTED"
	return injectCallFault("error")(s, in)
}
