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
	inAny  = `cluster=~"$cluster"`
	inBox  = inNode + `,device=~"$device"`
	ofBox  = inNode + `,device=~"$board"`
)

// alertNames fits every alert of the rules but the one that always fires, and hardly
// any other.
const alertNames = `alertname!="AccelWatchdog",alertname=~"Accel.*|Allocation.*|Fpga.*|Gpu.*|Host(ContextSwitchesHigh|KernelMemoryGrows)|NvLink.*|PowerFeedBraking"`

// Alerts have few labels: those on a device cluster, node and device, so that they keep
// their name while its pods, pool and scrape target change. The joins select them by
// what else is known of the node or device.
const (
	onNode  = `cluster=~"$cluster",node="$node",device=~"$device|$board|"`
	onPools = `cluster=~"$cluster",pool=~"$pool|"`
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
// index, or the id where there is no index, as of FPGAs; and the dashboard of such
// devices in the label board.
func names(selector string) string {
	expr := fmt.Sprintf(`label_replace(label_join(accel_device_info{%s}, "place", " ", "class", "index"), "name", "$1", "device", "(.+)")`, selector)
	for _, kind := range []struct{ class, word string }{{"gpu", "GPU"}, {"cpu", "CPU"}, {"switch", "NVSwitch"}} {
		expr = fmt.Sprintf(`label_replace(%s, "name", "%s $1", "place", "%s (.+)")`, expr, kind.word, kind.class)
	}
	return fmt.Sprintf(`label_replace(label_replace(%s, "board", "accel-node", "", ""), "board", "accel-fpga", "class", "fpga")`, expr)
}

// named gives each series the labels name and board of its device, and the further
// labels of accel_device_info.
func named(selector, expr string, further ...string) string {
	labels := "name, board"
	for _, l := range further {
		labels += ", " + l
	}
	return fmt.Sprintf("(%s) * %s group_left (%s) %s", expr, perDevice, labels, names(selector))
}

// zeroWhere is the expression, or 0 where it is empty and the proof is not: no result
// is 0 only if there was data. The proof must be read from where the expression is: a
// recorded series, or an alert, is absent where the rules are not loaded.
func zeroWhere(expr, proof string) string {
	return fmt.Sprintf("((%s) or 0 * (%s))", expr, proof)
}

// count is the number of series, and 0 only if there is the proof.
func count(expr, proof string) []query {
	return []query{{expr: zeroWhere(`count(`+expr+`)`, `count(`+proof+`)`)}}
}

// rulesLoaded is the alert that always fires: of the chosen clusters, or without a cluster
// where one Prometheus evaluates the rules for all.
const rulesLoaded = `ALERTS{alertname="AccelWatchdog",alertstate="firing",cluster=~"$cluster|"}`

// grew is by how much a counter grew since the step before. Unlike an increase over
// $__rate_interval, which spans several steps, it counts each event once. A counter
// that was reset has grown from 0, and a new counter from its first value.
func grew(counter string) string {
	before := counter + " offset $__interval"
	return "(" + counter + " - (" + before + " <= " + counter + " or 0 * (" + counter + " and " + before + ") or min_over_time(" + counter + "[$__interval])))"
}

// happened is the growth of a counter that is not served while it is 0: a series that
// was not there before has grown from 0.
func happened(counter string) string {
	return counter + " - (" + counter + " offset $__interval <= " + counter + " or 0 * " + counter + ") > 0"
}

// needsDetail is a sentence about what a panel shows only of a device that needs
// attention, unless the exporter serves everything.
func needsDetail(what string) string {
	return " For " + what + ", start the exporter with `--metrics.detail=full`."
}
