package fpga

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// updateSteps and updateErrors are the texts of a firmware upload as printed by
// drivers/base/firmware_loader/sysfs_upload.c.
var (
	updateSteps  = []string{"idle", "receiving", "preparing", "transferring", "programming"}
	updateErrors = []string{"hw-error", "timeout", "user-abort", "device-busy", "invalid-file-size", "read-write-error", "flash-wearout", "firmware-invalid"}
)

// readUpdate sets the progress of an update of the card's flash, from its
// device in the class firmware.
func (r *reading) readUpdate(o *Options, dir string) {
	step, ok := r.textEvery(o.SlowInterval, dir+"/status")
	if !ok {
		return
	}
	for _, s := range updateSteps {
		r.SetBool(collector.FPGAFirmwareUpdate, s == step, s)
	}
	r.SetBool(collector.FPGAFirmwareUpdate, !slices.Contains(updateSteps, step), "other")
	if text, ok := r.textEvery(o.SlowInterval, dir+"/remaining_size"); ok {
		if v, ok := r.whole(collector.FPGAFirmwareUpdateRemaining, text, 1); ok {
			r.Set(collector.FPGAFirmwareUpdateRemaining, v)
		}
	}
	// Empty without an error, EBUSY while the update runs, else step:error.
	if text, ok := r.textEvery(o.SlowInterval, dir+"/error"); ok && text != "" {
		_, name, found := strings.Cut(text, ":")
		if !found || !slices.Contains(updateErrors, name) {
			name = "other"
		}
		r.Set(collector.FPGAFirmwareUpdateError, 1, name)
	}
}
