package main

// event is an annotation on all timelines of a dashboard.
type event struct {
	name, expr        string
	title, text, tags string // of one mark: labels as {{label}}; tags are names of labels
	colour            string
	valueIsTime       bool // in milliseconds since the epoch
	off               bool // off until enabled by the user
}

// model is written out by hand: the SDK lacks the fields of this data source.
func (e event) model() map[string]any {
	return map[string]any{
		"name": e.name, "enable": !e.off, "hide": false, "iconColor": e.colour,
		"datasource":  map[string]any{"type": "prometheus", "uid": "${datasource}"},
		"expr":        e.expr,
		"step":        "60s",
		"titleFormat": e.title, "textFormat": e.text, "tagKeys": e.tags,
		"useValueForTime": e.valueIsTime,
		"target": map[string]any{
			"datasource": map[string]any{"type": "prometheus", "uid": "${datasource}"},
			"expr":       e.expr, "refId": e.name, "range": true, "interval": "60s",
		},
	}
}

// alerts marks the start of alerts with the selector, of those that the join leaves. The
// time for which each one fires would cover the chart, and several would hide its lines.
func alerts(selector, join string) event {
	return event{
		name: "Alerts", colour: red,
		expr:  firing(selector) + " unless " + firing(selector) + " offset 1m" + join,
		title: "{{alertname}}", text: "{{node}} {{device}} {{namespace}} {{workload}}", tags: "severity",
	}
}

// xids marks each Xid at its last time.
func xids(selector string) event {
	return event{
		name: "Xids", colour: orange, valueIsTime: true,
		expr:  `accel_gpu_xid_last_timestamp_seconds{` + selector + `} * 1000`,
		title: "Xid {{xid}}", text: "{{device}} {{partition}}",
	}
}

// holds marks when a device is allocated to a pod and when it is released.
func holds(selector string) []event {
	const sameHold = " unless on (" + target + ", device, namespace, pod) "
	held := `accel_allocation_info{` + selector + `}`
	before := held + " offset 1m"
	known := ` and on (` + target + `) accel_podmap_state{state="fresh"} offset 1m == 1`
	return []event{
		{name: "Pods begin", colour: blue, expr: held + sameHold + before + known, title: "{{namespace}}/{{pod}} begins", text: "{{device}}", tags: "resource"},
		{name: "Pods end", colour: purple, expr: before + sameHold + held, title: "{{namespace}}/{{pod}} ends", text: "{{device}}", tags: "resource"},
	}
}
