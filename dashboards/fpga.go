package main

// fpga shows what is loaded on which card, whether loading works, and the health
// of the cards.
func fpga() board {
	return board{
		uid: "accel-fpga", title: "Accelerators / FPGA", from: "now-6h",
		about:     "FPGA cards: what is loaded, reconfigurations, errors, power and heat, work and traffic.",
		variables: []variable{datasource, cluster, pool, cards},
		events:    []event{alerts(onPools, ` and on (cluster, node, device) accel_fpga_info{`+inCards+`}`)},
		rows: []row{
			{title: "Is something wrong?", panels: fpgaNow()},
			{title: "Cards and designs", panels: []panel{fpgaCards(), fpgaDesigns()}},
			{title: "Reconfigurations", panels: fpgaLoads()},
			{title: "Errors", panels: fpgaErrors()},
			{title: "Power and heat", panels: fpgaHeat()},
			{title: "Work and traffic", panels: fpgaWork()},
		},
	}
}

// cards narrows a dashboard to some nodes with FPGAs.
var cards = variable{
	name: "instance", label: "Scraped as", about: "The label instance of exporters whose nodes have FPGAs.",
	query: `label_values(accel_fpga_info{` + inPool + `}, instance)`, all: anything, several: true,
}

const (
	inCards = inPool + `,instance=~"$instance"`
	noCards = "No FPGA in this selection"
	notHere = "No card of this selection measures it"
	aCard   = `count(accel_fpga_info{` + inCards + `})`
)

// onCard is a query whose legend is the node, the PCI address of the card and the
// given labels.
func onCard(expr, further string) query {
	return query{host(expr), "{{host}} {{device}} " + further}
}

var unitStates = []state{{"crashed", "crashed", red}, {"running", "running", green}}

func fpgaNow() []panel {
	count := func(expr string) []query { return []query{{expr: zeroWhere(expr, aCard)}} }
	return []panel{
		tile(panel{
			kind: number, title: "Cards", unit: "none", scale: only(blue), empty: noCards,
			about:   "FPGA cards in this selection.",
			queries: []query{{expr: aCard}},
		}),
		tile(panel{
			kind: number, title: "Failed cards", unit: "none", scale: bad(1), empty: noCards,
			about:   "Cards whose verdict is failed or unknown.",
			queries: count(`count(accel_fpga_info{` + inCards + `} and ` + perDevice + ` accel_device_health{state=~"failed|unknown"} == 1)`),
		}),
		tile(panel{
			kind: number, title: "Allocated, no design", unit: "none", scale: bad(1), empty: noCards,
			about:   "Regions that are empty, or being configured, on cards that are allocated to a pod. FpgaBitstreamMissing fires when it lasts.",
			queries: count(`count(accel_fpga_bitstream_loaded{` + inCards + `} == 0 and ` + perDevice + ` accel_device_holders > 0)`),
		}),
		tile(panel{
			kind: number, title: "Failed reconfigurations", unit: "none", decimals: f(0), scale: bad(0.5), empty: noCards,
			about:   "Loads that failed in the time range.",
			queries: []query{{expr: `sum(increase(accel_fpga_reconfigurations_total{outcome="failed",` + inCards + `}[$__range]))`}},
		}),
		tile(panel{
			kind: number, title: "Latched error bits", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: "No card has error registers that are read",
			about:   "Bits that are set in error registers. Each stays set until it is cleared.",
			queries: []query{{expr: `sum(accel_fpga_errors_latched{` + inCards + `})`}},
		}),
		tile(panel{
			kind: number, title: "Designs not approved", unit: "none", scale: scale{green, []step{{1, orange}}}, empty: noCards,
			about:   "Cards whose bitstream or root key differs from the baseline, or from the resource name of its allocation.",
			queries: count(`count(group by (` + target + `, device) (accel_drift{component=~".+/.+",` + inCards + `} == 1))`),
			links:   []jump{*jumpTo("accel-drift", "Rollout")},
		}),
	}
}

func fpgaCards() panel {
	of := func(expr string) query {
		return query{expr: keep(host(`max by (`+target+`, device) (`+expr+`) * `+perDevice+` group_left (model) accel_device_info{class="fpga",`+inCards+`}`), "host, device, model")}
	}
	return panel{
		kind: listing, title: "Cards", unit: "none", width: 14, height: 10, empty: noCards,
		about:   "Current state of every card. An empty cell means not measured, not 0.",
		queries: []query{of(healthOf(inCards)), of(`accel_device_holders{` + inCards + `}`), of(`accel_power_watts{` + inCards + `}`), of(`accel_temperature_celsius{` + inCards + `}`), of(`sum by (` + target + `, device) (accel_fpga_errors_latched{` + inCards + `})`)},
		columns: []column{
			nodeColumn,
			{of: "device", title: "Id", jump: toDevice()},
			{of: "model", title: "Model"},
			{of: "A", title: "Health", states: healthStates, width: 90, sort: true},
			{of: "B", title: "Holders", width: 75},
			{of: "C", title: "Power", unit: "watt", width: 75},
			{of: "D", title: "Hottest", unit: "celsius", width: 80},
			{of: "E", title: "Errors", width: 70, scale: &scale{none, []step{{1, orange}}}},
		},
	}
}

func fpgaDesigns() panel {
	return panel{
		kind: listing, title: "Loaded designs", unit: "none", width: 10, height: 10, empty: "No card reports what is loaded",
		about:   "Designs by card and region, as the driver names them. firmware is the requested image, which does not prove what is in the fabric.",
		queries: []query{{expr: keep(host(`accel_fpga_bitstream_info{`+inCards+`}`), "host, device, region, kind, id")}},
		columns: []column{nodeColumn, {of: "device", title: "Card"}, {of: "region", title: "Region"}, {of: "kind", title: "Kind"}, {of: "id", title: "Bitstream"}},
	}
}

func fpgaLoads() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "Reconfigurations", unit: "none", stacked: true, min: f(0), empty: "No card reports reconfigurations",
			about:   "Loads of a design by outcome. A failed load leaves the region without a design.",
			queries: []query{{`sum by (outcome) (` + grew(`accel_fpga_reconfigurations_total{`+inCards+`}`) + `)`, "{{outcome}}"}},
			colours: []state{{value: "ok", colour: green}, {value: "failed", colour: red}},
		}),
		third(panel{
			kind: lines, title: "Duration of reconfigurations", unit: "s", min: f(0), empty: "No reconfiguration in this time",
			about:   "95th percentile of the loads in the time range, by pool.",
			queries: []query{{`histogram_quantile(0.95, sum by (cluster, pool, le) (rate(accel_fpga_reconfiguration_seconds_bucket{` + inPool + `}[$__range]))) >= 0`, "{{cluster}} {{pool}}"}},
		}),
		third(panel{
			kind: timeline, title: "Regions", unit: "none", empty: "No card reports whether a region is loaded", states: []state{{"1", "loaded", green}, {"0", "empty", orange}},
			about:   "Whether each region has a usable design. Short gaps are reconfigurations.",
			queries: []query{onCard(`max by (`+target+`, device, region) (accel_fpga_bitstream_loaded{`+inCards+`})`, "{{region}}")},
		}),
	}
}

func fpgaErrors() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "New error bits", unit: "none", stacked: true, min: f(0), empty: "No new error",
			about:   "New errors of each unit. Errors of fatal, catfatal and firewall lose work.",
			queries: []query{onCard(`sum by (`+target+`, device, unit) (`+grew(`accel_fpga_errors_total{`+inCards+`}`)+` > 0)`, "{{unit}}")},
		}),
		third(panel{
			kind: listing, title: "Latched errors", unit: "none", empty: "No bit is set, or no card has error registers",
			about:   "Bits that are set now. They stay set until they are cleared; unit and name are those of the driver.",
			queries: []query{{expr: keep(host(`accel_fpga_error_latched{`+inCards+`} == 1`), "host, device, unit, error")}},
			columns: []column{nodeColumn, {of: "device", title: "Id", jump: toDevice()}, {of: "unit", title: "Unit"}, {of: "error", title: "Error"}},
		}),
		third(panel{
			kind: bars, title: "Memory errors", unit: "none", stacked: true, min: f(0), empty: "No card counts memory errors",
			about:   "ECC errors of memory banks by severity. An uncorrected one means that data is already wrong.",
			queries: []query{onCard(`sum by (`+target+`, device, severity) (`+grew(`accel_fpga_memory_ecc_errors_total{`+inCards+`}`)+`)`, "{{severity}}")},
		}),
		third(panel{
			kind: timeline, title: "Firewalls", unit: "none", states: []state{{"0", "closed", green}, {"1", "tripped", red}}, empty: "No card with AXI firewalls",
			about:   "A tripped firewall isolates the design until the card is reset.",
			queries: []query{onCard(`max by (`+target+`, device, firewall) (accel_fpga_firewall_tripped{`+inCards+`})`, "{{firewall}}")},
		}),
		third(panel{
			kind: timeline, title: "Memory calibrated", unit: "none", states: []state{{"1", "yes", green}, {"0", "no", red}}, empty: "No card reports it",
			about:   "Whether each memory interface can be used. no is normal only while the card is configured.",
			queries: []query{onCard(`max by (`+target+`, device, bank) (accel_fpga_memory_calibrated{`+inCards+`})`, "{{bank}}")},
		}),
		third(panel{
			kind: bars, title: "PCIe error reports", unit: "none", stacked: true, min: f(0), empty: "No PCIe error, or no card reports them",
			about:   "Reports of both ends of the links towards each card, by severity. Nonfatal and fatal ones are always bad.",
			queries: []query{onCard(`sum by (`+target+`, device, severity) (`+grew(`accel_pcie_aer_reports_total{`+inCards+`}`)+` > 0) and `+perDevice+` accel_fpga_info`, "{{severity}}")},
		}),
	}
}

func fpgaHeat() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Power", unit: "watt", min: f(0), empty: notHere,
			about:   "Power of each card.",
			queries: []query{onCard(`accel_power_watts{`+inCards+`} and `+perDevice+` accel_fpga_info`, "")},
		}),
		third(panel{
			kind: lines, title: "Power as a share of its limit", unit: "percentunit", min: f(0), empty: "No card with a limit on its power",
			about:   "Power as a share of the lowest limit that is set. At the limit the card throttles or shuts down.",
			queries: []query{onCard(`accel_power_watts{`+inCards+`} / `+perDevice+` min by (`+target+`, device) (accel_fpga_power_threshold_watts{`+inCards+`} or accel_power_limit_watts{limit=~"max|slowdown|shutdown",`+inCards+`} and `+perDevice+` accel_fpga_info)`, "")},
		}),
		third(panel{
			kind: lines, title: "Margin to the next limit", unit: "celsius", limitLine: true, empty: "No card with a limit on a temperature",
			about:   "Degrees left at the sensor that is nearest to a limit of its own. AcceleratorsHot fires below the line.",
			scale:   scale{red, []step{{nearLimitCelsius, green}}},
			queries: []query{onCard(`min by (`+target+`, device) (accel_temperature_limit_celsius{`+inCards+`} - on (`+target+`, device, sensor) group_left () accel_temperature_celsius{`+inCards+`}) and `+perDevice+` accel_fpga_info`, "")},
		}),
		third(panel{
			kind: lines, title: "Temperatures", unit: "celsius", empty: notHere,
			about:   "The hottest sensor of each card; the page of the card shows all sensors.",
			queries: []query{onCard(`max by (`+target+`, device) (accel_temperature_celsius{`+inCards+`}) and `+perDevice+` accel_fpga_info`, "")},
		}),
		third(panel{
			kind: lines, title: "Fans", unit: "rotrpm", min: f(0), empty: "No card with a fan",
			about:   "Speed of each fan. A fan that does not turn while the card is hot is broken.",
			queries: []query{onCard(`accel_fan_speed_rpm{`+inCards+`}`, "{{fan}}")},
		}),
		third(panel{
			kind: lines, title: "Voltages: distance from their mean", unit: "percentunit", empty: "No card measures voltages",
			about:   "Deviation of each voltage from its mean of the last hour, for the ten largest. A deviation of more than five percent points to a failing power supply or board." + needsDetail("healthy cards"),
			queries: []query{onCard(`topk(10, abs(accel_fpga_voltage_volts{`+inCards+`} / avg_over_time(accel_fpga_voltage_volts{`+inCards+`}[1h]) - 1))`, "{{sensor}}")},
		}),
	}
}

func fpgaWork() []panel {
	return []panel{
		third(panel{
			kind: lines, title: "Runs of compute units", unit: "ops", min: f(0), empty: "No card that counts runs",
			about:   "Runs of each compute unit per second. No driver reports the utilization of an FPGA; under XRT this is the closest value.",
			queries: []query{onCard(`rate(accel_fpga_executions_total{`+inCards+`}[$__rate_interval])`, "{{unit}}")},
		}),
		third(panel{
			kind: lines, title: "Commands that wait", unit: "none", min: f(0), empty: "No card with queues",
			about:   "Commands that wait for a compute unit or for the scheduler. A queue that only grows means that a unit hangs.",
			queries: []query{onCard(`sum by (`+target+`, device, unit) (accel_fpga_queue_length{queue=~"pending|running",`+inCards+`})`, "{{unit}}")},
		}),
		third(panel{
			kind: lines, title: "DMA and PCIe traffic", unit: "Bps", min: f(0), empty: "No card that counts bytes",
			about:   "Bytes that the driver moved to and from the card.",
			queries: []query{onCard(`rate(accel_pcie_receive_bytes_total{`+inCards+`}[$__rate_interval]) and `+perDevice+` accel_fpga_info`, "received"), onCard(`rate(accel_pcie_transmit_bytes_total{`+inCards+`}[$__rate_interval]) and `+perDevice+` accel_fpga_info`, "sent")},
		}),
		third(panel{
			kind: lines, title: "Memory in use", unit: "bytes", min: f(0), empty: "No card that reports its memory",
			about:   "Memory of each bank that programs have allocated through the driver.",
			queries: []query{onCard(`accel_fpga_memory_bank_used_bytes{`+inCards+`}`, "{{bank}}")},
		}),
		third(panel{
			kind: lines, title: "Transactions", unit: "ops", min: f(0), empty: "Counted on DFL cards with --collector.fpga.transactions only",
			about:   "Transactions through the fabric of DFL cards per second. They have no fixed size, so there is no byte rate.",
			queries: []query{onCard(`rate(accel_fpga_transactions_total{`+inCards+`}[$__rate_interval])`, "{{kind}} {{direction}}")},
		}),
		third(panel{
			kind: listing, title: "Compute units", unit: "none", empty: "No card with compute units",
			about:   "State of each compute unit. crashed: programs that wait for it never continue.",
			queries: []query{{expr: keep(host(`accel_fpga_compute_unit_state{`+inCards+`} == 1`), "host, device, unit, state")}},
			columns: []column{nodeColumn, {of: "device", title: "Id", jump: toDevice()}, {of: "unit", title: "Unit"}, {of: "state", title: "State", states: unitStates}},
		}),
	}
}
