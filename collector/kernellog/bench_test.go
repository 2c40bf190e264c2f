package kernellog_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/kernellog"
)

// BenchmarkLine reads one record or line from its bytes on.
func BenchmarkLine(b *testing.B) {
	for _, line := range []struct{ name, text string }{
		{"unrelated record", "6,1234,5678901234,-;audit: type=1400 audit(1700000000.123:456): apparmor=\"ALLOWED\" operation=\"open\" profile=\"snap\"\n SUBSYSTEM=audit\n"},
		{"unrelated line", "May  4 10:06:00 host kernel: [  360.123456] audit: type=1400 audit(1700000000.123:456): apparmor=\"ALLOWED\" operation=\"open\"\n"},
		{"unrelated driver record", "4,1234,5678901234,-;NVRM:     -1    103  GSP_RM_ALLOC          0x0000000000002080 0x0000000000000004 0x00062ed1a6b51c6f\n"},
		{"Xid", "4,1234,5678901234,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=1234, name=python3, Ch 00000008\n"},
		{"NVLink Xid", "4,1234,5678901234,-;NVRM: Xid (PCI:0000:1b:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008 0x00000000)\n"},
	} {
		b.Run(line.name, func(b *testing.B) {
			log, text := kernellog.NewFed(false), []byte(line.text)
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				log.Feed(text)
				log.Events = log.Events[:0]
			}
		})
	}
}
