package main

import "fmt"

// target is the labels that name what was scraped, of a series of the exporter.
const target = "cluster, pool, node, job, instance"

// perDevice joins the series of one device. A device that two jobs scrape is
// two devices.
const perDevice = "on (" + target + ", device)"

// Selectors by the variables of a dashboard. A label that no series has, such
// as cluster, does no harm.
const (
	inPool = `cluster=~"$cluster",pool=~"$pool"`
	inNode = `cluster=~"$cluster",instance=~"$instance"`
	inBox  = inNode + `,device="$device"`
	ofBox  = inNode + `,device="$board"`
)

// alertNames fits every alert of the rules but the one that always fires, and hardly
// any other.
const alertNames = `alertname!="AccelWatchdog",alertname=~"Accel.*|Allocation.*|Fpga.*|Gpu.*|Host(ContextSwitchesHigh|KernelMemoryGrows)|NvLink.*|PowerFeedBraking"`

// Alerts have few labels: those on a device cluster, node and device, so that they keep
// their name while its pods, pool and scrape target change. The joins select them by
// what else is known of the node or device.
const (
	onNode   = `cluster=~"$cluster",node="$node"`
	onDevice = onNode + `,device=~"$device|$board"`
	onPools  = `cluster=~"$cluster",pool=~"$pool|"`
	// notElsewhere drops alerts on nodes that are known to be in another pool.
	notElsewhere = ` unless on (cluster, node) accel_source_up{cluster=~"$cluster",pool!~"$pool",node!=""}`
)

// firing is the alerts of the selector that fire.
func firing(selector string) string {
	return `ALERTS{alertstate="firing",` + alertNames + `,` + selector + `}`
}

// query is one expression of a panel. Legend has the form {{label}}.
type query struct {
	expr, legend string
}

// perName is one series for each device of the selector, in the order of their
// names.
func perName(selector, expr string) query {
	return query{"max by (name) (" + named(selector, expr) + ")", "{{name}}"}
}

// host adds the label host to each series: the node, or the scrape target if there
// is no label node.
func host(expr string) string {
	return fmt.Sprintf(`label_replace(label_replace(%s, "host", "$1", "instance", "(.+)"), "host", "$1", "node", "(.+)")`, expr)
}

// names is the devices of the selector with the label name: what it is and its
// index, or the id where there is no index, as of FPGAs.
func names(selector string) string {
	expr := fmt.Sprintf(`label_replace(label_join(accel_device_info{%s}, "place", " ", "class", "index"), "name", "$1", "device", "(.+)")`, selector)
	for _, kind := range []struct{ class, word string }{{"gpu", "GPU"}, {"cpu", "CPU"}, {"switch", "NVSwitch"}} {
		expr = fmt.Sprintf(`label_replace(%s, "name", "%s $1", "place", "%s (.+)")`, expr, kind.word, kind.class)
	}
	return expr
}

// named gives each series the label name of its device, and the further labels
// of accel_device_info.
func named(selector, expr string, further ...string) string {
	labels := "name"
	for _, l := range further {
		labels += ", " + l
	}
	return fmt.Sprintf("(%s) * %s group_left (%s) %s", expr, perDevice, labels, names(selector))
}

// zeroWhere is the expression, or 0 where it is empty and the proof is not:
// no result is 0 only if there was data.
func zeroWhere(expr, proof string) string {
	return fmt.Sprintf("((%s) or 0 * (%s))", expr, proof)
}
