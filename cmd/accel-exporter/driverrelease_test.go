package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// everyBoard is a node with every board, and distinct values in all fields that
// NVIDIA has renumbered. The simulated library answers by the numbering of the
// driver's version.
func everyBoard(t *testing.T, version string) (scenario string, boards int) {
	t.Helper()
	names := fixtureNames(t, "boards")
	text := fmt.Sprintf("description: every board\ndriver: {version: %q}\ngpus:\n", version)
	for _, name := range names {
		text += fmt.Sprintf("  - board: %s\n    values:\n", name)
		for i, v := range []int{1, 2, 0, 999, 400, 90, 0, 97, 5, 60, 1, 1, 3, 4, 50, 7, 8, 9} {
			text += fmt.Sprintf("      field.%d: %d\n", 251+i, v)
		}
		text += "      throttle.sw_thermal.ns: 7e9\n      throttle.hw_thermal.ns: 8e9\n      throttle.hw_power_brake.ns: 9e9\n      policy.thermal.ns: 15e9\n"
		text += "      field.272: 11\n      field.273: 12\n"
	}
	return tempFile(t, "every-board.yaml", text), len(names)
}

// TestDriverReleases checks that no board has a value of another field, whatever
// the driver's numbering of fields is: what can be known is right, the rest is
// absent, and no GPU is degraded by it.
func TestDriverReleases(t *testing.T) {
	t.Parallel()
	for version, known := range map[string]bool{
		"570.148.08": false, "580.65.06": true, "580.76.05": false, "580.82.07": true, "unknown": false,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			scenario, boards := everyBoard(t, version)
			n := start(t, scenario, []string{"--frozen=600"})
			with, without := 0, boards
			if known {
				with, without = boards, 0
			}
			throttled := `accel_throttle_seconds_total\{.*reason="%s"\} %s`
			wanted := map[string]int{
				fmt.Sprintf(throttled, "sw_thermal", "7"):                           with,
				fmt.Sprintf(throttled, "hw_thermal", "8"):                           with,
				fmt.Sprintf(throttled, "hw_power_brake", "9"):                       with,
				fmt.Sprintf(throttled, "thermal", "15"):                             without,
				fmt.Sprintf(throttled, "(thermal|.*_thermal|hw_power_brake)", ".*"): 3*with + without,
				`accel_gpu_power_smoothing_lifetime_ratio\{.*\} 0.97`:               with,
				`accel_gpu_power_smoothing_lifetime_ratio\{.*`:                      with,
				`accel_device_health\{.*state="healthy"\} 1`:                        boards,
				`accel_device_health_reason\{.*\} 1`:                                0,
			}
			var wrong []string
			settle(n)
			n.rounds(func(page string) bool {
				wrong = nil
				for pattern, want := range wanted {
					if found := regexp.MustCompile(`(?m)^`+pattern+`$`).FindAllString(page, -1); len(found) != want {
						wrong = append(wrong, fmt.Sprintf("%d series, want %d: %s\n%s", len(found), want, pattern, strings.Join(found, "\n")))
					}
				}
				return wrong == nil
			})
			for _, w := range wrong {
				t.Error(w)
			}
		})
	}
}
